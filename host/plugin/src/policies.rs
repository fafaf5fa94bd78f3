//! The policies for engines: those of the program, and those that an operator has approved.

use super::embedded::POLICIES;
use super::error::LoadError;
use super::load::read_directory;
use super::pin::{self, SUFFIX};
use std::collections::BTreeMap;
use std::path::Path;
use wharf_engine::PolicyFile;

/// The policies of the process.
#[derive(Debug)]
pub struct Policies {
    /// By the kind of engine.
    embedded: BTreeMap<String, PolicyFile>,
    /// By the name of the plugin, `driver-x`.
    approved: BTreeMap<String, PolicyFile>,
}

impl Policies {
    /// Reads the policies. One in the directory needs its hash in the configuration.
    pub fn read(
        directory: Option<&Path>,
        pins: &BTreeMap<String, String>,
    ) -> Result<Self, LoadError> {
        let mut embedded = BTreeMap::new();
        for (plugin, text) in POLICIES {
            let file = PolicyFile::of_program(text).map_err(|why| LoadError::Policy {
                file: format!("{plugin}{SUFFIX}"),
                why,
            })?;
            embedded.insert(file.kind().to_owned(), file);
        }
        let mut policies = Self {
            embedded,
            approved: BTreeMap::new(),
        };
        if let Some(directory) = directory {
            policies.add(directory, pins)?;
        }
        for file in pins.keys() {
            if let Some(plugin) = file.strip_suffix(SUFFIX)
                && !policies.approved.contains_key(plugin)
            {
                return Err(LoadError::PinnedAbsent { file: file.clone() });
            }
        }
        Ok(policies)
    }

    fn add(&mut self, directory: &Path, pins: &BTreeMap<String, String>) -> Result<(), LoadError> {
        for path in read_directory(directory)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let Some(plugin) = name.strip_suffix(SUFFIX) else {
                continue;
            };
            if !plugin.starts_with("driver-") {
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
            let file = PolicyFile::parse(&text).map_err(|why| LoadError::Policy {
                file: name.clone().into_owned(),
                why,
            })?;
            self.approved.insert(plugin.to_owned(), file);
        }
        Ok(())
    }

    /// The policy for a plugin's kind of engine: its own, or that of the program.
    pub fn of(&self, plugin: &str, kind: &str) -> Result<&PolicyFile, LoadError> {
        match self.approved.get(plugin) {
            Some(own) if own.kind() == kind => Ok(own),
            Some(own) => Err(LoadError::PolicyKind {
                file: format!("{plugin}{SUFFIX}"),
                kind: own.kind().to_owned(),
                needed: kind.to_owned(),
            }),
            None => self.embedded.get(kind).ok_or_else(|| LoadError::NoPolicy {
                plugin: plugin.to_owned(),
                kind: kind.to_owned(),
            }),
        }
    }
}
