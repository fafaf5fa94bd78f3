//! What instances run on: a dockerd of our own, engines of the user's, or a simulated one.
//!
//! An instance stays with the engine that has it. So each choice has a configuration, a database and
//! keys of its own, and none finds the instances of another.

use super::sockets;
use crate::engine::short_hash;
use crate::http::Endpoint;
use crate::process::is_root;
use crate::say;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// One of them.
#[derive(Debug)]
pub(super) enum Choice {
    /// A dockerd of our own.
    Private,
    /// Engines of the user's, in the order of their sockets.
    Given(Vec<Endpoint>),
    /// Only simulated.
    Simulated,
}

impl Choice {
    /// The engines that were asked for; without any, the best that this user can have.
    pub fn make(engines: &[String]) -> Result<Self> {
        if !engines.is_empty() {
            return Self::given(engines);
        }
        if is_root() && cfg!(target_os = "linux") {
            return Ok(Self::Private);
        }
        if let Some(endpoint) = sockets::find() {
            say::step(&format!(
                "Not root; found an engine of yours at {endpoint}."
            ));
            return Ok(Self::Given(vec![endpoint]));
        }
        say::step("Not root, no --engine, and none found: instances will be SIMULATED.");
        say::note(
            "The interface is the real one, but there is nothing to log in to. For real instances \
             run it as root,\nor start an engine of your own (systemctl --user start podman.socket), \
             or name one:\n--engine unix:///var/run/docker.sock",
        );
        Ok(Self::Simulated)
    }

    fn given(texts: &[String]) -> Result<Self> {
        let mut endpoints = Vec::new();
        for text in texts {
            let endpoint = socket(text).with_context(|| format!("--engine {text}"))?;
            ensure!(
                !endpoints.contains(&endpoint),
                "--engine {text} names an engine for the second time: give each once"
            );
            endpoints.push(endpoint);
        }
        endpoints.sort_by_key(ToString::to_string);
        Ok(Self::Given(endpoints))
    }

    /// Where its configuration, data and keys are, below the directory for all.
    pub fn directory(&self, base: &Path) -> PathBuf {
        match self {
            Self::Private => base.to_owned(),
            Self::Given(endpoints) => {
                let names: Vec<_> = endpoints.iter().map(ToString::to_string).collect();
                base.join(format!(
                    "engine-{}",
                    short_hash(names.join("\n").as_bytes())
                ))
            }
            Self::Simulated => base.join("simulated"),
        }
    }
}

/// An engine's socket, by one name whatever links lead to it. Wharf reaches engines in no other way.
pub(super) fn socket(text: &str) -> Result<Endpoint> {
    match Endpoint::parse(text) {
        Ok(Endpoint::Unix(path)) => {
            let path = path
                .canonicalize()
                .with_context(|| format!("{}", path.display()))?;
            Ok(Endpoint::Unix(path))
        }
        _ => bail!("Wharf reaches an engine over its socket only: unix:///absolute/path"),
    }
}

#[cfg(test)]
mod tests {
    use super::Choice;
    use std::path::Path;

    fn sockets(count: usize) -> (tempfile::TempDir, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let names = (0..count).map(|n| {
            let path = dir.path().join(format!("{n}.sock"));
            std::fs::File::create(&path).unwrap();
            format!("unix://{}", path.display())
        });
        let names = names.collect();
        (dir, names)
    }

    #[test]
    fn every_choice_has_a_directory_of_its_own() {
        let (_dir, names) = sockets(2);
        let directory = |choice: &Choice| choice.directory(Path::new("/w"));
        let given = |engines: &[&String]| {
            let engines: Vec<_> = engines.iter().map(|name| (*name).clone()).collect();
            directory(&Choice::make(&engines).unwrap())
        };
        let all = [
            directory(&Choice::Private),
            directory(&Choice::Simulated),
            given(&[&names[0]]),
            given(&[&names[1]]),
            given(&[&names[0], &names[1]]),
        ];
        for (n, one) in all.iter().enumerate() {
            assert!(!all[..n].contains(one), "{all:?}");
        }
        assert_eq!(given(&[&names[1], &names[0]]), all[4]);
    }

    #[test]
    fn an_engine_is_a_socket_that_is_there_and_is_given_once() {
        let (_dir, names) = sockets(1);
        let refused = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            format!("{:#}", Choice::make(&names).unwrap_err())
        };
        let tcp = refused(&["tcp://127.0.0.1:2375"]);
        assert!(tcp.contains("--engine tcp://127.0.0.1:2375"), "{tcp}");
        assert!(tcp.contains("unix:///absolute/path"), "{tcp}");
        assert!(refused(&["http://127.0.0.1:2375"]).contains("unix:///absolute/path"));
        assert!(refused(&["unix:///no/such.sock"]).contains("/no/such.sock"));
        assert!(refused(&[&names[0], &names[0]]).contains("second time"));
    }
}
