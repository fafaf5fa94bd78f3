//! The files of the data directory: the account with the authority, the certificate, and the state between two
//! attempts. Only Wharf's account can read them.

use super::order::AcmeError;
use crate::certificate_dates;
use instant_acme::AccountCredentials;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use wharf_config::{Config, Domain};

const DAY: u64 = 24 * 3600;

/// The state between two attempts, also over a restart. No part is for the log: an order has a key.
#[derive(Default, Serialize, Deserialize)]
pub struct AcmeState {
    /// The directory of the authority that the attempts were with.
    #[serde(default)]
    pub(super) directory: String,
    /// The domain that the attempts were for.
    #[serde(default)]
    pub(super) domain: String,
    /// The attempts that failed since the last success.
    pub failures: u32,
    /// The time of the next attempt, in seconds since 1970.
    pub not_before: u64,
    /// The reason of the last failure.
    pub error: Option<String>,
    /// The order that the next attempt goes on with.
    pub(super) order: Option<PendingOrder>,
    /// The TXT record that may still be there.
    pub(super) record: Option<TxtRecord>,
}

/// A record that proves to the authority who controls a domain.
#[derive(Serialize, Deserialize)]
pub(super) struct TxtRecord {
    pub name: String,
    pub value: String,
}

/// An order that has no certificate yet.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct PendingOrder {
    pub directory: String,
    pub domain: String,
    pub url: String,
    /// The private key of the certificate, in PEM format.
    pub key: String,
}

/// The account with an authority.
#[derive(Serialize, Deserialize)]
pub(super) struct AcmeAccount {
    pub directory: String,
    pub contact: Option<String>,
    /// The authority's name for the key of an external account.
    pub key_id: Option<String>,
    pub credentials: AccountCredentials,
}

/// The directory with these files.
pub(super) struct AcmeFiles(PathBuf);

impl AcmeFiles {
    pub fn new(config: &Config) -> Self {
        Self(dir(config))
    }

    /// The state of the attempts with an authority for a domain. Of any others, it has the record alone.
    pub fn state(&self, directory: &str, domain: &Domain) -> AcmeState {
        let state: AcmeState = self.read("state.json").unwrap_or_default();
        if state.directory == directory && state.domain == domain.as_str() {
            return state;
        }
        AcmeState {
            directory: directory.to_owned(),
            domain: domain.to_string(),
            record: state.record,
            ..AcmeState::default()
        }
    }

    pub fn write(&self, state: &AcmeState) -> Result<(), AcmeError> {
        self.put("state.json", &serde_json::to_vec(state)?)
    }

    pub fn account(&self) -> Option<AcmeAccount> {
        self.read("account.json")
    }

    pub fn write_account(&self, account: &AcmeAccount) -> Result<(), AcmeError> {
        self.put("account.json", &serde_json::to_vec(account)?)
    }

    /// Forgets an account that the authority does not know any more. The next attempt makes another.
    pub fn forget_account(&self) {
        let _ = std::fs::remove_file(self.0.join("account.json"));
    }

    /// Keeps a certificate with its key and the directory of its authority in one file, so that they always
    /// belong together. Readers of PEM files skip text above the key.
    pub fn write_certificate(
        &self,
        directory: &str,
        key: &str,
        chain: &str,
    ) -> Result<(), AcmeError> {
        let content = format!("{AUTHORITY}{directory}\n{key}{chain}");
        self.put(CERTIFICATE, content.as_bytes())
    }

    /// A new file for the error output of the hook.
    pub fn hook_output(&self) -> io::Result<(File, PathBuf)> {
        wharf_secure_fs::make_dir(&self.0)?;
        let path = self.0.join("hook.log");
        let file = wharf_secure_fs::open(&path)?;
        file.set_len(0)?;
        Ok((file, path))
    }

    fn read<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Option<T> {
        let text = std::fs::read(self.0.join(name)).ok()?;
        // The parts of a broken file are not for the log.
        serde_json::from_slice(&text).ok()
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), AcmeError> {
        let path = self.0.join(name);
        let written = wharf_secure_fs::make_dir(&self.0)
            .and_then(|()| wharf_secure_fs::write(&path, &[content]));
        written.map_err(|source| AcmeError::Keep { path, source })
    }
}

/// The file with the key and the chain of the certificate.
const CERTIFICATE: &str = "pages.pem";
/// The beginning of its first line, before the directory of the authority.
const AUTHORITY: &str = "Authority: ";

fn dir(config: &Config) -> PathBuf {
    config.data_dir.join("acme")
}

/// The file with the key and the chain of the certificate.
pub fn certificate_file(config: &Config) -> PathBuf {
    dir(config).join(CERTIFICATE)
}

/// A certificate and its dates.
pub struct PresentCertificate {
    pub(super) der: CertificateDer<'static>,
    pub not_before: u64,
    pub not_after: u64,
}

impl PresentCertificate {
    /// Reads the first certificate of a file, if it is from the authority with this directory.
    pub(super) fn read(path: &Path, directory: &str) -> Option<Self> {
        let text = std::fs::read_to_string(path).ok()?;
        let authority = text.lines().next()?.strip_prefix(AUTHORITY)?;
        let der = CertificateDer::from_pem_slice(text.as_bytes()).ok()?;
        Self::of(der).filter(|_| authority == directory)
    }

    pub(super) fn of(der: CertificateDer<'static>) -> Option<Self> {
        let (not_before, not_after) = certificate_dates::validity(&der)?;
        Some(Self {
            der,
            not_before,
            not_after,
        })
    }

    pub fn is_for(&self, domain: &Domain) -> bool {
        certificate_dates::is_for(&self.der, domain).unwrap_or(false)
    }

    /// The time to renew it: that of the authority, or else when a third of its life is left. A sixth is left in
    /// any case.
    pub(super) fn renew_at(&self, advised: Option<u64>) -> u64 {
        let life = self.not_after.saturating_sub(self.not_before);
        let third = self.not_after.saturating_sub(life / 3);
        let latest = self.not_after.saturating_sub(life / 6);
        advised.unwrap_or(third).min(latest)
    }
}

/// A time span in words.
pub fn in_words(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..120 => (seconds, "seconds"),
        120..7200 => (seconds / 60, "minutes"),
        7200..172_800 => (seconds / 3600, "hours"),
        _ => (seconds / DAY, "days"),
    };
    format!("{count} {unit}")
}

#[cfg(test)]
mod tests {
    use super::{CertificateDer, DAY, PresentCertificate};

    #[test]
    fn a_certificate_is_renewed_in_its_last_third_or_when_the_authority_says_so() {
        let present = PresentCertificate {
            der: CertificateDer::from(Vec::new()),
            not_before: 0,
            not_after: 90 * DAY,
        };
        assert_eq!(present.renew_at(None), 60 * DAY);
        assert_eq!(present.renew_at(Some(10 * DAY)), 10 * DAY);
        assert_eq!(present.renew_at(Some(90 * DAY)), 75 * DAY);
    }
}
