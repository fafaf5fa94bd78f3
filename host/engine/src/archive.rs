//! The tar archive of a blueprint's files. User secrets enter requests here and nowhere else.

use super::crypt::crypt;
use super::message::EngineError;
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap};
use tar::{Builder, EntryType, Header};
use wharf_domain::blueprint::{BlueprintFile, FileContent};
use wharf_domain::secret::{InstanceSecrets, SecretKind, SecretText};

/// Most files in one archive.
const MAX_FILES: usize = 256;
/// Most bytes of content in one archive.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Directories of every image. In the archive they would change the owner or the mode, or replace the
/// symbolic link of a merged-/usr image.
const STANDARD: &[&str] = &[
    "bin",
    "etc",
    "home",
    "lib",
    "opt",
    "root",
    "run",
    "sbin",
    "srv",
    "tmp",
    "usr",
    "usr/local",
    "var",
    "var/lib",
];

/// The crypt hashes of one call; each is computed once.
pub type Hashes = HashMap<SecretKind, SecretText>;

/// Builds the archive. Paths are relative to `/`. A parent directory precedes its files and has the
/// owner of the first one, since removing a file needs a writable directory.
pub fn build(
    files: &[BlueprintFile],
    secrets: &InstanceSecrets,
    hashes: &mut Hashes,
) -> Result<Bytes, EngineError> {
    if files.len() > MAX_FILES {
        return Err(refused(format!(
            "an archive of more than {MAX_FILES} files"
        )));
    }
    let mut builder = Builder::new(Vec::new());
    let mut directories = BTreeSet::new();
    let mut total = 0_usize;
    for file in files {
        let path = relative(&file.path)?;
        let content = content(file, secrets, hashes)?;
        total = total.saturating_add(content.len());
        if total > MAX_BYTES {
            return Err(refused(format!(
                "an archive of more than {MAX_BYTES} bytes"
            )));
        }
        for directory in parents(path) {
            if directories.insert(directory.to_owned()) {
                append(
                    &mut builder,
                    directory,
                    EntryType::Directory,
                    FileOwner::of(file, 0o755),
                    &[],
                )?;
            }
        }
        let owner = FileOwner::of(file, file.mode & 0o7777);
        append(&mut builder, path, EntryType::Regular, owner, &content)?;
    }
    builder
        .into_inner()
        .map(Bytes::from)
        .map_err(|_| refused("the archive cannot be built".into()))
}

/// The content of one file.
pub fn content(
    file: &BlueprintFile,
    secrets: &InstanceSecrets,
    hashes: &mut Hashes,
) -> Result<Bytes, EngineError> {
    relative(&file.path)?;
    let content = match &file.content {
        FileContent::Bytes(bytes) => Bytes::copy_from_slice(bytes),
        FileContent::Secret(kind) => {
            Bytes::copy_from_slice(known(secrets, *kind)?.expose().as_bytes())
        }
        FileContent::SecretCrypt(kind) => {
            Bytes::copy_from_slice(hashed(secrets, *kind, hashes)?.expose().as_bytes())
        }
    };
    if content.len() > MAX_BYTES {
        Err(refused(format!("a file of more than {MAX_BYTES} bytes")))
    } else {
        Ok(content)
    }
}

/// The owner of an entry, and its mode.
#[derive(Clone, Copy)]
struct FileOwner {
    mode: u32,
    uid: u32,
    gid: u32,
}

impl FileOwner {
    fn of(file: &BlueprintFile, mode: u32) -> Self {
        Self {
            mode,
            uid: file.uid,
            gid: file.gid,
        }
    }
}

fn append(
    builder: &mut Builder<Vec<u8>>,
    path: &str,
    kind: EntryType,
    owner: FileOwner,
    content: &[u8],
) -> Result<(), EngineError> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(owner.mode);
    header.set_uid(owner.uid.into());
    header.set_gid(owner.gid.into());
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    builder
        .append_data(&mut header, path, content)
        .map_err(|_| refused(format!("{path:?} does not fit into an archive")))
}

/// The path below `/`, if it is absolute and normal.
fn relative(path: &str) -> Result<&str, EngineError> {
    path.strip_prefix('/')
        .filter(|rest| {
            !rest.contains('\0') && rest.split('/').all(|part| !matches!(part, "" | "." | ".."))
        })
        .ok_or_else(|| refused(format!("{path:?} is not an absolute path in normal form")))
}

/// `a/b/c` → `a`, `a/b`, without the directories that every image has.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/')
        .filter_map(move |(end, _)| path.get(..end))
        .filter(|directory| !STANDARD.contains(directory))
}

fn known(secrets: &InstanceSecrets, kind: SecretKind) -> Result<&SecretText, EngineError> {
    secrets
        .get(kind)
        .ok_or_else(|| refused(format!("the call has no secret {kind:?}")))
}

fn hashed(
    secrets: &InstanceSecrets,
    kind: SecretKind,
    hashes: &mut Hashes,
) -> Result<SecretText, EngineError> {
    if let Some(hash) = hashes.get(&kind) {
        return Ok(hash.clone());
    }
    let hash = crypt(kind, known(secrets, kind)?);
    let hash = hash.ok_or_else(|| refused("a secret cannot be hashed".into()))?;
    hashes.insert(kind, hash.clone());
    Ok(hash)
}

fn refused(why: String) -> EngineError {
    EngineError::Refused(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn file(path: &str, content: FileContent) -> BlueprintFile {
        BlueprintFile {
            path: path.into(),
            mode: 0o600,
            uid: 0,
            gid: 7,
            content,
        }
    }

    #[test]
    fn secrets_are_filled_in_and_parents_made() {
        let secrets = InstanceSecrets(vec![(SecretKind::Password, SecretText::new("pw"))]);
        let files = [
            file(
                "/etc/wharf/first-boot/user",
                FileContent::Bytes(b"user".to_vec()),
            ),
            file(
                "/etc/wharf/first-boot/plain",
                FileContent::Secret(SecretKind::Password),
            ),
            file(
                "/etc/wharf/first-boot/password",
                FileContent::SecretCrypt(SecretKind::Password),
            ),
        ];
        let tar = build(&files, &secrets, &mut Hashes::new()).unwrap();
        let mut seen = Vec::new();
        for entry in tar::Archive::new(&tar[..]).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let mode = entry.header().mode().unwrap();
            seen.push((
                entry.path().unwrap().to_string_lossy().into_owned(),
                mode,
                text,
            ));
        }
        let names: Vec<_> = seen
            .iter()
            .map(|(name, mode, _)| (name.as_str(), *mode))
            .collect();
        assert_eq!(
            names,
            [
                ("etc/wharf", 0o755),
                ("etc/wharf/first-boot", 0o755),
                ("etc/wharf/first-boot/user", 0o600),
                ("etc/wharf/first-boot/plain", 0o600),
                ("etc/wharf/first-boot/password", 0o600),
            ]
        );
        assert_eq!(seen[3].2, "pw");
        assert!(seen[4].2.starts_with("$6$"));
    }

    #[test]
    fn a_directory_belongs_to_the_owner_of_its_first_file() {
        let mut first = file(
            "/var/lib/wharf/first-boot/user",
            FileContent::Bytes(Vec::new()),
        );
        first.uid = 1000;
        let files = [
            first,
            file("/var/lib/wharf/x/y", FileContent::Bytes(Vec::new())),
        ];
        let tar = build(&files, &InstanceSecrets::default(), &mut Hashes::new()).unwrap();
        let mut archive = tar::Archive::new(&tar[..]);
        let owners: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let path = entry.path().unwrap().to_string_lossy().into_owned();
                (path, entry.header().uid().unwrap())
            })
            .collect();
        let expected = [
            ("var/lib/wharf", 1000),
            ("var/lib/wharf/first-boot", 1000),
            ("var/lib/wharf/first-boot/user", 1000),
            ("var/lib/wharf/x", 0),
            ("var/lib/wharf/x/y", 0),
        ];
        assert_eq!(owners, expected.map(|(path, uid)| (path.to_owned(), uid)));
    }

    #[test]
    fn hostile_paths_and_missing_secrets_are_refused() {
        for path in ["etc/x", "/", "/a//b", "/a/../b", "/./a", "/a/", "/a\0b", ""] {
            let files = [file(path, FileContent::Bytes(Vec::new()))];
            let answer = build(&files, &InstanceSecrets::default(), &mut Hashes::new());
            assert!(matches!(answer, Err(EngineError::Refused(_))), "{path:?}");
        }
        let files = [file("/a", FileContent::Secret(SecretKind::S3AccessKeyId))];
        assert!(build(&files, &InstanceSecrets::default(), &mut Hashes::new()).is_err());
    }
}
