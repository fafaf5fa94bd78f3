//! The files of the drivers' requests: those of the program, and those that an operator has approved.

use super::embedded::{POLICIES, REQUESTS};
use super::error::LoadError;
use super::load::read_directory;
use super::pin;
use std::collections::BTreeMap;
use std::path::Path;
use wharf_engine::{DriverFile, PolicyFile};
use wharf_requests::RequestFile;

/// The files of the process.
#[derive(Debug)]
pub struct Policies {
    /// By the kind of engine.
    embedded: BTreeMap<String, DriverFile>,
    /// By the name of the file, `driver-x.requests.toml`.
    approved: BTreeMap<String, DriverFile>,
}

impl Policies {
    /// Reads the files. One in the directory needs its hash in the configuration.
    pub fn read(
        directory: Option<&Path>,
        pins: &BTreeMap<String, String>,
    ) -> Result<Self, LoadError> {
        let policies = POLICIES.iter().map(|(plugin, text)| {
            let file = PolicyFile::parse(text).map(DriverFile::Policy);
            file.map_err(|why| wrong(format!("{plugin}{}", pin::POLICY), why))
        });
        let requests = REQUESTS.iter().map(|(plugin, text)| {
            let file = RequestFile::parse(text).map(DriverFile::Requests);
            file.map_err(|why| wrong(format!("{plugin}{}", pin::REQUESTS), why))
        });
        let by_kind = |file: DriverFile| (file.kind().to_owned(), file);
        let embedded = policies.chain(requests).map(|file| file.map(by_kind));
        let embedded = embedded.collect::<Result<_, _>>()?;
        let mut policies = Self {
            embedded,
            approved: BTreeMap::new(),
        };
        if let Some(directory) = directory {
            policies.add(directory, pins)?;
        }
        for file in pins.keys() {
            if pin::is_request_file(file) && !policies.approved.contains_key(file) {
                return Err(LoadError::PinnedAbsent { file: file.clone() });
            }
        }
        Ok(policies)
    }

    fn add(&mut self, directory: &Path, pins: &BTreeMap<String, String>) -> Result<(), LoadError> {
        for path in read_directory(directory)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !pin::is_request_file(&name) {
                continue;
            }
            if !name.starts_with("driver-") {
                return Err(LoadError::PolicyName {
                    name: name.into_owned(),
                });
            }
            let text = std::fs::read(&path).map_err(|source| LoadError::Read {
                path: path.clone(),
                source,
            })?;
            let found = pin::hash(&text);
            match pins.get(&*name) {
                None => {
                    return Err(LoadError::Unapproved {
                        path: path.clone(),
                        file: name.into_owned(),
                        found,
                    });
                }
                Some(pinned) if !found.eq_ignore_ascii_case(pinned) => {
                    return Err(LoadError::Hash {
                        file: name.into_owned(),
                        pinned: pinned.clone(),
                        found,
                    });
                }
                Some(_) => {}
            }
            let text = String::from_utf8_lossy(&text);
            let file = if name.ends_with(pin::POLICY) {
                PolicyFile::parse(&text).map(DriverFile::Policy)
            } else {
                RequestFile::parse(&text).map(DriverFile::Requests)
            };
            let file = file.map_err(|why| wrong(name.clone().into_owned(), why))?;
            self.approved.insert(name.into_owned(), file);
        }
        Ok(())
    }

    /// The file for a plugin's kind of engine: its own, or that of the program.
    pub fn of(&self, plugin: &str, kind: &str) -> Result<&DriverFile, LoadError> {
        let own = [pin::REQUESTS, pin::POLICY].map(|end| format!("{plugin}{end}"));
        for name in own {
            match self.approved.get(&name) {
                Some(own) if own.kind() == kind => return Ok(own),
                Some(own) => {
                    return Err(LoadError::PolicyKind {
                        file: name,
                        kind: own.kind().to_owned(),
                        needed: kind.to_owned(),
                    });
                }
                None => {}
            }
        }
        self.embedded.get(kind).ok_or_else(|| LoadError::NoPolicy {
            plugin: plugin.to_owned(),
            kind: kind.to_owned(),
        })
    }
}

fn wrong(file: String, why: String) -> LoadError {
    LoadError::Policy { file, why }
}
