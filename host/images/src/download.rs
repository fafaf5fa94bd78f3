//! Files for builds, downloaded by this machine into the cache.

use crate::failure::Failure;
use crate::http::block_on;
use crate::sources::{Download, Sources};
use crate::{Recipes, progress, record};
use anyhow::{Context, Result, anyhow, ensure};
use reqwest::Client;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt as _;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::NamedTempFile;

/// Enough to connect through a proxy.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// Longest time without a byte.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// Enough for a large file over a slow network.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(3600);
/// Most bytes of a file.
const MAX_BYTES: u64 = 16 << 30;

/// A file of the cache.
pub(crate) struct Downloaded {
    pub file: PathBuf,
    /// Its name in the build.
    pub name: String,
    /// 64 hexadecimal digits.
    pub sha256: String,
    url: String,
    /// The recorded checksum, with `sha256:`.
    earlier: Option<String>,
    is_pinned: bool,
}

impl Downloaded {
    /// Records the checksum, after a build with the file.
    pub fn record(&self, recipes: &Recipes) -> Result<()> {
        if self.is_pinned {
            return Ok(());
        }
        let sum = format!("sha256:{}", self.sha256);
        record::set(recipes, &self.url, self.earlier.as_deref(), &sum)
    }
}

/// The checksum that a file must have, 64 hexadecimal digits: the one of the file of sources, or else the recorded one.
pub(crate) fn pin(recipes: &Recipes, download: &Download) -> Result<Option<String>> {
    if download.sha256.is_some() {
        return Ok(download.sha256.clone());
    }
    let recorded = record::digest_of(recipes, &download.url)?;
    Ok(recorded.map(|digest| digest.trim_start_matches("sha256:").to_owned()))
}

/// The file of a download, from the cache if it is there. `renews` takes the present file of the URL in place of the
/// recorded one.
pub(crate) fn take(
    recipes: &Recipes,
    sources: &Sources,
    download: &Download,
    renews: bool,
) -> Result<Downloaded, Failure> {
    let Download { url, name, .. } = download;
    let directory = recipes.cache.join("downloads");
    let earlier = pin(recipes, download)?;
    let taken = |sha256: String| Downloaded {
        file: directory.join(&sha256),
        name: name.clone(),
        sha256,
        url: url.clone(),
        earlier: earlier.as_ref().map(|sum| format!("sha256:{sum}")),
        is_pinned: download.sha256.is_some(),
    };
    let is_renewed = renews && download.sha256.is_none();
    let pin = earlier.clone().filter(|_| !is_renewed);
    if let Some(found) = pin.clone().map(&taken).filter(|found| found.file.is_file()) {
        return Ok(found);
    }
    fs::create_dir_all(&directory).with_context(|| format!("{}", directory.display()))?;
    let at = sources.mirrored(url);
    progress::note(&format!("Downloading {at}."));
    let draft = NamedTempFile::new_in(&directory).context("a file of the cache")?;
    let got = block_on(|| fetch(&at, pin.is_none(), &draft));
    let got = got.map_err(|error| {
        let error = error.context(at.clone());
        if earlier.is_some() && is_renewed {
            Failure::Ends(error)
        } else {
            Failure::Passed(error)
        }
    })?;
    if let Some(pin) = &pin
        && *pin != got
    {
        let key = if download.sha256.is_some() {
            "download.sha256"
        } else {
            "recorded"
        };
        let error = anyhow!("{key}: the file at {at} has the SHA-256 {got}, not {pin}");
        return Err(Failure::Ends(error));
    }
    let found = taken(got);
    draft.persist(&found.file).context("a file of the cache")?;
    if let Some(earlier) = earlier.as_ref().filter(|earlier| **earlier != found.sha256) {
        progress::note(&format!("{url}: {} in place of {earlier}", found.sha256));
    }
    Ok(found)
}

/// Writes the file at a URL to the draft, and returns its checksum.
async fn fetch(url: &str, needs_https: bool, draft: &NamedTempFile) -> Result<String> {
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    let client = Client::builder()
        .tls_backend_preconfigured(tls)
        .https_only(needs_https)
        .connect_timeout(CONNECT_LIMIT)
        .read_timeout(READ_LIMIT)
        .timeout(DOWNLOAD_LIMIT)
        .build()?;
    let mut response = client.get(url).send().await?.error_for_status()?;
    let (mut out, mut hash, mut bytes) = (draft.as_file(), Sha256::new(), 0);
    while let Some(chunk) = response.chunk().await? {
        bytes += chunk.len() as u64;
        ensure!(bytes <= MAX_BYTES, "more than {MAX_BYTES} bytes");
        hash.update(&chunk);
        out.write_all(&chunk)?;
    }
    out.sync_all()?;
    let digest = hash.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}
