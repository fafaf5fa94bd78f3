//! The file of a simulated engine that outlives the process. It has a line for each change, of which the
//! last one of a machine counts, and is rewritten when opened. It is not synced, as simulated machines
//! need not survive a power failure.

use super::machine::Machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use uuid::Uuid;

/// The file; `None` for an engine in memory.
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
    /// A journal in memory, which keeps nothing.
    pub fn nowhere() -> Self {
        Self(None)
    }

    /// Whether machines survive the process.
    pub fn keeps(&self) -> bool {
        self.0.is_some()
    }

    /// Reads a file and compacts it.
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
            line(&mut writer, *id, Some(machine))?;
        }
        writer.flush()?;
        std::fs::rename(&draft, path)?;
        let file = OpenOptions::new().append(true).open(path)?;
        Ok((Self(Some(file)), machines.into_iter().collect()))
    }

    /// Writes a machine's state, or its removal.
    pub fn write(&mut self, id: Uuid, machine: Option<&Machine>) -> io::Result<()> {
        match &mut self.0 {
            Some(file) => line(file, id, machine),
            None => Ok(()),
        }
    }
}

fn read(reader: impl BufRead, machines: &mut BTreeMap<Uuid, Machine>) -> io::Result<()> {
    for line in reader.lines() {
        // The last line may be incomplete if the process was killed.
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

fn line(writer: &mut impl Write, id: Uuid, machine: Option<&Machine>) -> io::Result<()> {
    let mut text = serde_json::to_vec(&Line { id, machine }).map_err(io::Error::other)?;
    text.push(b'\n');
    writer.write_all(&text)
}
