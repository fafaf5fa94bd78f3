//! The file that keeps the machines of a simulated engine beyond the process.
//!
//! Each change appends a line, and the last line of a machine counts. Opening the file compacts it.
//! The file is not synced, so it survives the end of the process but not a power failure.

use super::machine::Machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use uuid::Uuid;

/// The journal of changes. It has no file if the engine is in memory.
#[derive(Debug)]
pub struct Journal(Option<File>);

#[derive(Serialize)]
struct Line<'a> {
    id: Uuid,
    machine: Option<&'a Machine>,
}

#[derive(Deserialize)]
struct OwnedLine {
    id: Uuid,
    machine: Option<Machine>,
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
    pub fn open(path: &Path) -> io::Result<(Self, Vec<(Uuid, Machine)>)> {
        let mut machines = BTreeMap::new();
        match File::open(path) {
            Ok(file) => read(BufReader::new(file), &mut machines)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let draft = path.with_extension("draft");
        let mut writer = BufWriter::new(File::create(&draft)?);
        for (id, machine) in &machines {
            write_line(&mut writer, *id, Some(machine))?;
        }
        writer.flush()?;
        std::fs::rename(&draft, path)?;
        let file = OpenOptions::new().append(true).open(path)?;
        Ok((Self(Some(file)), machines.into_iter().collect()))
    }

    /// Appends the current state of a machine, or its deletion.
    pub fn write(&mut self, id: Uuid, machine: Option<&Machine>) -> io::Result<()> {
        match &mut self.0 {
            Some(file) => write_line(file, id, machine),
            None => Ok(()),
        }
    }
}

fn read(reader: impl BufRead, machines: &mut BTreeMap<Uuid, Machine>) -> io::Result<()> {
    for line in reader.lines() {
        // The last line is incomplete if the process was killed during a write.
        let Ok(line) = serde_json::from_str::<OwnedLine>(&line?) else {
            continue;
        };
        match line.machine {
            Some(machine) => drop(machines.insert(line.id, machine)),
            None => drop(machines.remove(&line.id)),
        }
    }
    Ok(())
}

fn write_line(writer: &mut impl Write, id: Uuid, machine: Option<&Machine>) -> io::Result<()> {
    let mut text = serde_json::to_vec(&Line { id, machine }).map_err(io::Error::other)?;
    text.push(b'\n');
    writer.write_all(&text)
}
