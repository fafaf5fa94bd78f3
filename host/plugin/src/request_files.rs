//! The request files of the drivers: those of the program, and those that an operator has approved.

use super::embedded::REQUESTS;
use super::error::LoadError;
use super::load::{read, read_directory};
use super::pin;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wharf_requests::RequestFile;

/// The request files of the process.
#[derive(Debug)]
pub struct RequestFiles {
    /// By the kind of engine.
    embedded: BTreeMap<String, HashedFile>,
    /// By the name of the file, `driver-x.requests.toml`.
    approved: BTreeMap<String, HashedFile>,
}

/// A request file with the hash of its text.
#[derive(Debug)]
pub struct HashedFile {
    pub file: RequestFile,
    pub hash: String,
}

impl RequestFiles {
    /// Reads the files. One in the directory needs its hash in the configuration.
    pub fn read(
        directory: Option<&Path>,
        pins: &BTreeMap<String, String>,
    ) -> Result<Self, LoadError> {
        let paths = directory.map(read_directory).transpose()?;
        let files = Self::of_files(&paths.unwrap_or_default(), pins)?;
        for file in pins.keys() {
            if pin::is_request_file(file) && !files.approved.contains_key(file) {
                return Err(LoadError::PinnedAbsent { file: file.clone() });
            }
        }
        Ok(files)
    }

    /// Reads the files of the program, and the request files among these, which need their hashes in the
    /// configuration.
    pub fn of_files(paths: &[PathBuf], pins: &BTreeMap<String, String>) -> Result<Self, LoadError> {
        let mut files = Self {
            embedded: BTreeMap::new(),
            approved: BTreeMap::new(),
        };
        for (plugin, text) in REQUESTS {
            let file = parse(format!("{plugin}{}", pin::REQUESTS), text.as_bytes())?;
            files.embedded.insert(file.file.kind().to_owned(), file);
        }
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if pin::is_request_file(&name) && path.exists() {
                files.add(path, &name, pins)?;
            }
        }
        Ok(files)
    }

    fn add(
        &mut self,
        path: &Path,
        name: &str,
        pins: &BTreeMap<String, String>,
    ) -> Result<(), LoadError> {
        if !name.starts_with("driver-") {
            return Err(LoadError::RequestFileName {
                name: name.to_owned(),
            });
        }
        let text = read(path)?;
        let found = pin::hash(&text);
        match pins.get(name) {
            None => {
                return Err(LoadError::Unapproved {
                    path: path.to_owned(),
                    file: name.to_owned(),
                    found,
                });
            }
            Some(pinned) if !found.eq_ignore_ascii_case(pinned) => {
                return Err(LoadError::Hash {
                    file: name.to_owned(),
                    pinned: pinned.clone(),
                    found,
                });
            }
            Some(_) => {}
        }
        let file = parse(name.to_owned(), &text)?;
        self.approved.insert(name.to_owned(), file);
        Ok(())
    }

    /// The file for a plugin's kind of engine: its own, or that of the program.
    pub fn of(&self, plugin: &str, kind: &str) -> Result<&HashedFile, LoadError> {
        let name = format!("{plugin}{}", pin::REQUESTS);
        match self.approved.get(&name) {
            Some(own) if own.file.kind() == kind => Ok(own),
            Some(own) => Err(LoadError::RequestFileKind {
                file: name,
                kind: own.file.kind().to_owned(),
                needed: kind.to_owned(),
            }),
            None => self
                .embedded
                .get(kind)
                .ok_or_else(|| LoadError::NoRequestFile {
                    plugin: plugin.to_owned(),
                    kind: kind.to_owned(),
                }),
        }
    }
}

fn parse(name: String, content: &[u8]) -> Result<HashedFile, LoadError> {
    let file = RequestFile::parse(&String::from_utf8_lossy(content));
    Ok(HashedFile {
        file: file.map_err(|why| LoadError::RequestFile { file: name, why })?,
        hash: pin::hash(content),
    })
}
