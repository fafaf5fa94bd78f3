//! The file that keeps the machines of a simulated engine beyond the process.
//!
//! Each change appends a line, and the last line of a machine counts. Opening the file compacts it.
//! The file is not synced, so it survives the end of the process but not a power failure.

use super::machine::Machine;
use super::snapshots::SimulatedSnapshot;
use super::volumes::SimulatedVolume;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
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
    pub snapshots: BTreeMap<Uuid, SimulatedSnapshot>,
}

/// A line. One with nothing but an id tells that the machine is gone.
#[derive(Serialize, Deserialize, Default)]
struct Line<'a> {
    /// Id of a machine, a volume or a snapshot, or the installation of a mark.
    id: String,
    machine: Option<Cow<'a, Machine>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    volume: Option<KeptLine<SimulatedVolume>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    snapshot: Option<KeptLine<SimulatedSnapshot>>,
}

/// The state of a volume or a snapshot.
#[derive(Serialize, Deserialize)]
enum KeptLine<T> {
    Is(T),
    Gone,
}

impl<T: Clone> KeptLine<T> {
    fn of(kept: Option<&T>) -> Option<Self> {
        Some(kept.map_or(Self::Gone, |kept| Self::Is(kept.clone())))
    }

    fn apply(self, id: Uuid, to: &mut BTreeMap<Uuid, T>) {
        match self {
            Self::Is(kept) => drop(to.insert(id, kept)),
            Self::Gone => drop(to.remove(&id)),
        }
    }
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
            Line::of_machine(*id, Some(machine)).write(&mut writer)?;
        }
        for (id, mark) in &kept.marks {
            Line::of_mark(id, mark).write(&mut writer)?;
        }
        for (id, volume) in &kept.volumes {
            Line::of_volume(*id, Some(volume)).write(&mut writer)?;
        }
        for (id, snapshot) in &kept.snapshots {
            Line::of_snapshot(*id, Some(snapshot)).write(&mut writer)?;
        }
        writer.flush()?;
        std::fs::rename(&draft, path)?;
        let file = OpenOptions::new().append(true).open(path)?;
        Ok((Self(Some(file)), kept))
    }

    /// Appends the current state of a machine, or its deletion.
    pub fn write(&mut self, id: Uuid, machine: Option<&Machine>) -> io::Result<()> {
        self.append(&Line::of_machine(id, machine))
    }

    /// Appends the mark of an installation.
    pub fn write_mark(&mut self, id: &str, mark: &str) -> io::Result<()> {
        self.append(&Line::of_mark(id, mark))
    }

    /// Appends the state of a volume, or its deletion.
    pub fn write_volume(&mut self, id: Uuid, volume: Option<&SimulatedVolume>) -> io::Result<()> {
        self.append(&Line::of_volume(id, volume))
    }

    /// Appends the state of a snapshot, or its deletion.
    pub fn write_snapshot(&mut self, id: Uuid, one: Option<&SimulatedSnapshot>) -> io::Result<()> {
        self.append(&Line::of_snapshot(id, one))
    }

    fn append(&mut self, line: &Line<'_>) -> io::Result<()> {
        match &mut self.0 {
            Some(file) => line.write(file),
            None => Ok(()),
        }
    }
}

impl<'a> Line<'a> {
    fn of_machine(id: Uuid, machine: Option<&'a Machine>) -> Self {
        Self {
            id: id.to_string(),
            machine: machine.map(Cow::Borrowed),
            ..Self::default()
        }
    }

    fn of_mark(installation: &str, mark: &'a str) -> Self {
        Self {
            id: installation.to_owned(),
            mark: Some(mark.into()),
            ..Self::default()
        }
    }

    fn of_volume(id: Uuid, volume: Option<&SimulatedVolume>) -> Self {
        Self {
            id: id.to_string(),
            volume: KeptLine::of(volume),
            ..Self::default()
        }
    }

    fn of_snapshot(id: Uuid, snapshot: Option<&SimulatedSnapshot>) -> Self {
        Self {
            id: id.to_string(),
            snapshot: KeptLine::of(snapshot),
            ..Self::default()
        }
    }

    fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        let mut text = serde_json::to_vec(self).map_err(io::Error::other)?;
        text.push(b'\n');
        writer.write_all(&text)
    }
}

fn read(reader: impl BufRead, kept: &mut StoreContent) -> io::Result<()> {
    for line in reader.lines() {
        // The last line is incomplete if the process was killed during a write.
        let Ok(line) = serde_json::from_str::<Line<'_>>(&line?) else {
            continue;
        };
        let id = Uuid::try_parse(&line.id).ok();
        match (line, id) {
            (
                Line {
                    volume: Some(volume),
                    ..
                },
                Some(id),
            ) => volume.apply(id, &mut kept.volumes),
            (
                Line {
                    snapshot: Some(snapshot),
                    ..
                },
                Some(id),
            ) => {
                snapshot.apply(id, &mut kept.snapshots);
            }
            (
                Line {
                    id,
                    mark: Some(mark),
                    ..
                },
                _,
            ) => {
                kept.marks.insert(id, mark.into_owned());
            }
            (
                Line {
                    machine: Some(machine),
                    ..
                },
                Some(id),
            ) => {
                kept.machines.insert(id, machine.into_owned());
            }
            (_, Some(id)) => drop(kept.machines.remove(&id)),
            (_, None) => {}
        }
    }
    Ok(())
}
