//! The names and dates of a certificate.

use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::time::Duration;
use webpki::{EndEntityCert, Error, KeyUsage};
use wharf_config::Domain;

/// A time after the end of every certificate.
const LATE: Duration = Duration::from_secs(365_000 * 24 * 3600);

/// The times between which a certificate is valid, in seconds since 1970.
pub fn validity(certificate: &CertificateDer<'_>) -> Option<(u64, u64)> {
    let cert = EndEntityCert::try_from(certificate).ok()?;
    // The errors of a time before and of one after name the dates.
    let at = |time| {
        let usage = KeyUsage::server_auth();
        let time = UnixTime::since_unix_epoch(time);
        cert.verify_for_usage(&[], &[], &[], time, usage, None, None)
            .err()
    };
    match (at(Duration::ZERO), at(LATE)) {
        (
            Some(Error::CertNotValidYet { not_before, .. }),
            Some(Error::CertExpired { not_after, .. }),
        ) => Some((not_before.as_secs(), not_after.as_secs())),
        _ => None,
    }
}

/// Whether a certificate is for the names below a domain.
pub fn is_for(certificate: &CertificateDer<'_>, domain: &Domain) -> Result<bool, String> {
    let cert = EndEntityCert::try_from(certificate).map_err(|error| error.to_string())?;
    let name = format!("name.{domain}");
    let name = ServerName::try_from(name.as_str()).map_err(|error| error.to_string())?;
    Ok(cert.verify_is_valid_for_subject_name(&name).is_ok())
}
