//! The engines that instances run on: a private dockerd or Incus, existing engines, or a simulated engine.
//!
//! An instance stays on its engine. Each choice therefore has its own configuration, database and keys.

use super::sockets;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use wharf_testkit::engine::short_hash;
use wharf_testkit::http::Endpoint;
use wharf_testkit::process::is_root;
use wharf_testkit::progress;

/// The choice of engines.
#[derive(Debug)]
pub(super) enum Engines {
    /// A dockerd that `up` starts.
    Private,
    /// An Incus that `up` starts.
    Incus,
    /// Engines that the user runs, sorted by socket.
    Existing(Vec<Endpoint>),
    /// A simulated engine.
    Simulated,
}

impl Engines {
    /// Chooses the engines of `--engine`; without any, the best that this user may use.
    pub fn choose(engines: &[String]) -> Result<Self> {
        if !engines.is_empty() {
            return Self::existing(engines);
        }
        if is_root() && cfg!(target_os = "linux") {
            return Ok(Self::Private);
        }
        if let Some(endpoint) = sockets::find() {
            progress::step(&format!("Not root; using the engine at {endpoint}."));
            return Ok(Self::Existing(vec![endpoint]));
        }
        progress::step("Not root, and no engine found: instances will be SIMULATED.");
        progress::note(
            "The interface is real, but there is nothing to log in to. For real instances, run this as \
             root,\nor start an engine (systemctl --user start podman.socket), or name one:\n\
             --engine unix:///var/run/docker.sock",
        );
        Ok(Self::Simulated)
    }

    fn existing(texts: &[String]) -> Result<Self> {
        let mut endpoints = Vec::new();
        for text in texts {
            let endpoint = socket(text).with_context(|| format!("--engine {text}"))?;
            ensure!(
                !endpoints.contains(&endpoint),
                "--engine {text} names an engine a second time"
            );
            endpoints.push(endpoint);
        }
        endpoints.sort_by_key(ToString::to_string);
        Ok(Self::Existing(endpoints))
    }

    /// The directory of configuration, data and keys, below `base`.
    pub fn directory(&self, base: &Path) -> PathBuf {
        match self {
            Self::Private => base.to_owned(),
            Self::Existing(endpoints) => {
                let names: Vec<_> = endpoints.iter().map(ToString::to_string).collect();
                base.join(format!(
                    "engine-{}",
                    short_hash(names.join("\n").as_bytes())
                ))
            }
            Self::Incus => base.join("incus"),
            Self::Simulated => base.join("simulated"),
        }
    }
}

/// Parses the socket of an engine, and resolves links. Wharf reaches such engines only over sockets.
pub(super) fn socket(text: &str) -> Result<Endpoint> {
    match Endpoint::parse(text) {
        Ok(Endpoint::Unix(path)) => {
            let path = path
                .canonicalize()
                .with_context(|| format!("{}", path.display()))?;
            Ok(Endpoint::Unix(path))
        }
        _ => bail!("Wharf reaches an engine over its socket: unix:///absolute/path"),
    }
}

#[cfg(test)]
mod tests {
    use super::Engines;
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
        let directory = |choice: &Engines| choice.directory(Path::new("/w"));
        let given = |engines: &[&String]| {
            let engines: Vec<_> = engines.iter().map(|name| (*name).clone()).collect();
            directory(&Engines::choose(&engines).unwrap())
        };
        let all = [
            directory(&Engines::Private),
            directory(&Engines::Incus),
            directory(&Engines::Simulated),
            given(&[&names[0]]),
            given(&[&names[1]]),
            given(&[&names[0], &names[1]]),
        ];
        for (n, one) in all.iter().enumerate() {
            assert!(!all[..n].contains(one), "{all:?}");
        }
        assert_eq!(given(&[&names[1], &names[0]]), all[5]);
    }

    #[test]
    fn an_engine_is_an_existing_socket_named_once() {
        let (_dir, names) = sockets(1);
        let refused = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            format!("{:#}", Engines::choose(&names).unwrap_err())
        };
        let tcp = refused(&["tcp://127.0.0.1:2375"]);
        assert!(tcp.contains("--engine tcp://127.0.0.1:2375"), "{tcp}");
        assert!(tcp.contains("unix:///absolute/path"), "{tcp}");
        assert!(refused(&["http://127.0.0.1:2375"]).contains("unix:///absolute/path"));
        assert!(refused(&["unix:///no/such.sock"]).contains("/no/such.sock"));
        assert!(refused(&[&names[0], &names[0]]).contains("second time"));
    }
}
