//! The file that keeps the machines of a simulated engine beyond the process.
//!
//! Each change appends a line, and the last line of a machine counts. Opening the file compacts it.
//! The file is not synced, so it survives the end of the process but not a power failure.

use super::machine::Machine;
use super::volumes::SimulatedVolume;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use uuid::Uuid;

/// The journal of changes. It has no file if the engine is in memory.
#[derive(Debug)]
pub struct Journal(Option<File>);

/// The content of a store.
#[derive(Debug, Default)]
pub struct StoreContent {
    pub machines: BTreeMap<Uuid, Machine>,
    /// Marks of the store, by installation.
    pub marks: BTreeMap<String, String>,
    pub volumes: BTreeMap<Uuid, SimulatedVolume>,
}

#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    machine: Option<&'a Machine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<&'a VolumeLine>,
}

/// The state of a volume.
#[derive(Serialize, Deserialize)]
enum VolumeLine {
    Is(SimulatedVolume),
    Gone,
}

#[derive(Deserialize)]
struct OwnedLine {
    /// Id of a machine or a volume, or the installation of a mark.
    id: String,
    machine: Option<Machine>,
    #[serde(default)]
    mark: Option<String>,
    #[serde(default)]
    volume: Option<VolumeLine>,
}

impl Journal {
    /// Creates a journal without a file.
    pub fn nowhere() -> Self {
        Self(None)
    }

    /// Returns whether machines outlive the process.
    pub fn keeps(&self) -> bool {
        self.0.is_some()
    }

    /// Reads the machines from a file and compacts it.
    pub fn open(path: &Path) -> io::Result<(Self, StoreContent)> {
        let mut kept = StoreContent::default();
        match File::open(path) {
            Ok(file) => read(BufReader::new(file), &mut kept)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let draft = path.with_extension("draft");
        let mut writer = BufWriter::new(File::create(&draft)?);
        for (id, machine) in &kept.machines {
            write_line(&mut writer, &id.to_string(), Some(machine), None, None)?;
        }
        for (id, mark) in &kept.marks {
            write_line(&mut writer, id, None, Some(mark), None)?;
        }
        for (id, volume) in &kept.volumes {
            let volume = VolumeLine::Is(volume.clone());
            write_line(&mut writer, &id.to_string(), None, None, Some(&volume))?;
        }
        writer.flush()?;
        std::fs::rename(&draft, path)?;
        let file = OpenOptions::new().append(true).open(path)?;
        Ok((Self(Some(file)), kept))
    }

    /// Appends the current state of a machine, or its deletion.
    pub fn write(&mut self, id: Uuid, machine: Option<&Machine>) -> io::Result<()> {
        match &mut self.0 {
            Some(file) => write_line(file, &id.to_string(), machine, None, None),
            None => Ok(()),
        }
    }

    /// Appends the mark of an installation.
    pub fn write_mark(&mut self, id: &str, mark: &str) -> io::Result<()> {
        match &mut self.0 {
            Some(file) => write_line(file, id, None, Some(mark), None),
            None => Ok(()),
        }
    }

    /// Appends the state of a volume, or its deletion.
    pub fn write_volume(&mut self, id: Uuid, volume: Option<&SimulatedVolume>) -> io::Result<()> {
        let line = volume.map_or(VolumeLine::Gone, |volume| VolumeLine::Is(volume.clone()));
        match &mut self.0 {
            Some(file) => write_line(file, &id.to_string(), None, None, Some(&line)),
            None => Ok(()),
        }
    }
}

fn read(reader: impl BufRead, kept: &mut StoreContent) -> io::Result<()> {
    for line in reader.lines() {
        // The last line is incomplete if the process was killed during a write.
        let Ok(line) = serde_json::from_str::<OwnedLine>(&line?) else {
            continue;
        };
        let id = Uuid::try_parse(&line.id).ok();
        match (line.volume, id) {
            (Some(VolumeLine::Is(volume)), Some(id)) => {
                kept.volumes.insert(id, volume);
                continue;
            }
            (Some(VolumeLine::Gone), Some(id)) => {
                kept.volumes.remove(&id);
                continue;
            }
            _ => {}
        }
        match (line.machine, line.mark, id) {
            (_, Some(mark), _) => drop(kept.marks.insert(line.id, mark)),
            (Some(machine), None, Some(id)) => drop(kept.machines.insert(id, machine)),
            (None, None, Some(id)) => drop(kept.machines.remove(&id)),
            (_, None, None) => {}
        }
    }
    Ok(())
}

fn write_line(
    writer: &mut impl Write,
    id: &str,
    machine: Option<&Machine>,
    mark: Option<&str>,
    volume: Option<&VolumeLine>,
) -> io::Result<()> {
    let line = Line {
        id,
        machine,
        mark,
        volume,
    };
    let mut text = serde_json::to_vec(&line).map_err(io::Error::other)?;
    text.push(b'\n');
    writer.write_all(&text)
}
