//! Certificates of an engine and its clients, made for one test run.

use crate::server::write_private;
use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

static NEXT: AtomicU32 = AtomicU32::new(1);

/// An issuer of certificates, with its files in a directory of its own.
pub struct Authority {
    dir: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// The files of a certificate and its private key.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate.
    pub cert: PathBuf,
    /// The private key, which only its owner may read.
    pub key: PathBuf,
}

impl Authority {
    /// Makes an issuer.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        // Issuers with one name would be told apart by their signatures only.
        let name = format!("issuer {}", NEXT.fetch_add(1, Ordering::Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("ca.crt"), issuer.pem())?;
        Ok(Self { dir, issuer })
    }

    /// The file of the issuer's own certificate.
    pub fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.crt")
    }

    /// Issues a certificate for these DNS names and addresses.
    pub fn issue(&self, file: &str, names: &[&str]) -> Result<Certificate> {
        self.write(file, Self::params(file, names)?)
    }

    /// Issues a certificate that has expired.
    pub fn issue_expired(&self, file: &str, names: &[&str]) -> Result<Certificate> {
        let mut params = Self::params(file, names)?;
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        self.write(file, params)
    }

    fn params(name: &str, names: &[&str]) -> Result<CertificateParams> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        Ok(params)
    }

    fn write(&self, file: &str, params: CertificateParams) -> Result<Certificate> {
        let pair = KeyPair::generate()?;
        let certificate = params.signed_by(&pair, &self.issuer)?;
        let at = |extension: &str| self.dir.path().join(format!("{file}.{extension}"));
        let (cert, key) = (at("crt"), at("key"));
        std::fs::write(&cert, certificate.pem())?;
        write_private(&key, pair.serialize_pem().as_bytes())?;
        Ok(Certificate { cert, key })
    }
}

impl Certificate {
    /// The setting `tls` of a node of a client with this certificate that trusts `ca`.
    pub fn node_tls(&self, ca: &Path) -> String {
        let (cert, key) = (self.cert.display(), self.key.display());
        format!(
            "tls = {{ cert = \"{cert}\", key = \"{key}\", ca = \"{}\" }}\n",
            ca.display()
        )
    }
}
