//! Refusal of files and directories that other accounts of the machine could use against Wharf.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bits of a mode with which other accounts can change a file, or the names in a directory.
const WRITE: u32 = 0o022;
/// All bits of other accounts.
const ANY: u32 = 0o077;

/// The reason why a path cannot be trusted, and its remedy.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    /// The path cannot be examined.
    #[error("cannot examine {path}")]
    Unknown { path: PathBuf, source: io::Error },
    /// Another account owns it.
    #[error(
        "{path} belongs to user {owner}, but Wharf runs as user {own}: run Wharf as its owner, or run \
         `chown {own} {path}` if you trust its content"
    )]
    Owner { path: PathBuf, owner: u32, own: u32 },
    /// Other accounts can change it.
    #[error("{path} has mode {mode:04o}, so other accounts can change it: run `chmod go-w {path}`")]
    Writable { path: PathBuf, mode: u32 },
    /// Other accounts can read it.
    #[error("{path} has mode {mode:04o}, so other accounts can read it: run `chmod 0600 {path}`")]
    Readable { path: PathBuf, mode: u32 },
}

/// Checks that only this account and root can change a file or directory.
pub fn check_own(path: &Path) -> Result<(), Untrusted> {
    let mode = mode_of_own(path)?;
    match mode & WRITE {
        0 => Ok(()),
        _ => Err(Untrusted::Writable {
            path: path.to_owned(),
            mode,
        }),
    }
}

/// Checks that only this account and root can read or change a file.
pub fn check_secret(path: &Path) -> Result<(), Untrusted> {
    let mode = mode_of_own(path)?;
    match mode & ANY {
        0 => Ok(()),
        _ => Err(Untrusted::Readable {
            path: path.to_owned(),
            mode,
        }),
    }
}

/// The mode of a file that belongs to this account or root.
fn mode_of_own(path: &Path) -> Result<u32, Untrusted> {
    let metadata = fs::metadata(path).map_err(|source| Untrusted::Unknown {
        path: path.to_owned(),
        source,
    })?;
    let (owner, own) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner != own && owner != 0 {
        return Err(Untrusted::Owner {
            path: path.to_owned(),
            owner,
            own,
        });
    }
    Ok(metadata.mode() & 0o7777)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn open_modes_and_foreign_owners_are_named_with_their_remedy() {
        let dir = std::env::temp_dir().join(format!("wharf-check-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let shown = dir.display();
        for (mode, changed, read) in [
            (0o700, "", ""),
            (0o755, "", "chmod 0600"),
            (
                0o775,
                "mode 0775, so other accounts can change it: run `chmod go-w",
                "chmod 0600",
            ),
            (0o1777, "mode 1777", "mode 1777"),
        ] {
            fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
            for (result, part) in [(check_own(&dir), changed), (check_secret(&dir), read)] {
                let text = result
                    .err()
                    .map(|error| error.to_string())
                    .unwrap_or_default();
                assert!(text.contains(part), "{text}");
                assert_eq!(text.is_empty(), part.is_empty(), "{mode:o} {text}");
                assert!(text.is_empty() || text.contains(&shown.to_string()));
            }
        }
        fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&dir, Some(4321), None).unwrap();
            let text = check_own(&dir).unwrap_err().to_string();
            assert!(
                text.contains("belongs to user 4321") && text.contains("chown 0 "),
                "{text}"
            );
        }
        fs::remove_dir_all(&dir).unwrap();
        assert!(matches!(check_own(&dir), Err(Untrusted::Unknown { .. })));
    }
}
