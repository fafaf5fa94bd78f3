//! The source of a Podman: the machine's packages if they are of the right release of Debian, else a
//! root file system made from the packages of that release.

use super::super::kind::Kind;
use crate::packages::{self, Need};
use crate::process::{command, run};
use crate::{progress, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The programs of the machine's own Podman.
pub const PODMAN: [Need; 3] = [
    Need {
        program: "podman",
        package: "podman",
        why: "the engine that runs instances",
    },
    Need {
        program: "runc",
        package: "runc",
        why: "Podman starts containers with it",
    },
    Need {
        program: "/usr/lib/podman/netavark",
        package: "netavark",
        why: "Podman makes networks with it",
    },
];
const MMDEBSTRAP: [Need; 1] = [Need {
    program: "mmdebstrap",
    package: "mmdebstrap",
    why: "makes a root file system of another release",
}];
/// The packages of the root file system besides the essential ones.
const PACKAGES: &str =
    "podman,runc,netavark,aardvark-dns,nftables,iptables,iproute2,ca-certificates";

/// A release of Debian: the machine's own, or in a root file system.
pub(super) struct Release {
    suite: &'static str,
    root: Option<PathBuf>,
}

impl Release {
    /// The release that has the Podman of this kind.
    pub fn of(kind: Kind) -> Result<Self> {
        let suite = kind.suite().context("dockerd is not from a release")?;
        let own = wharf_images::platform()?.starts_with(&format!("{suite}-"));
        let root = (!own).then(|| workspace::target().join(format!("{kind}-{suite}")));
        Ok(Self { suite, root })
    }

    /// The root file system, unless it is the machine's.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Installs the release, once.
    pub fn install(&self) -> Result<()> {
        let Some(root) = &self.root else {
            return packages::ensure(&PODMAN);
        };
        if root.is_dir() {
            return Ok(());
        }
        packages::ensure(&MMDEBSTRAP)?;
        let title = format!(
            "Making a root file system with the Podman of {}",
            self.suite
        );
        progress::timed(&title, || {
            let draft = root.with_extension("draft");
            let _ = fs::remove_dir_all(&draft);
            fs::create_dir_all(&draft)?;
            run(command("mmdebstrap")
                .args(["--quiet", "--variant=minbase", "--include", PACKAGES])
                .args(wharf_images::apt_options())
                .arg(self.suite)
                .arg(&draft)
                .args(wharf_images::apt_sources(self.suite)))?;
            fs::rename(&draft, root)?;
            Ok(())
        })
    }
}
