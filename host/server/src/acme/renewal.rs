//! Renewal information (RFC 9773): the time at which an authority wants a certificate to be renewed.

use super::kept::{Kept, Present};
use super::order::{self, AcmeError};
use instant_acme::{CertificateIdentifier, Error};
use rustls_pki_types::{CertificateDer, Der};
use webpki::EndEntityCert;
use wharf_config::AcmeConfig;

/// The header of the key identifier of the issuer in a certificate: an extension that is not critical, with
/// this identifier alone or first. The lengths are left out.
const ISSUER_KEY: [Option<u8>; 11] = [
    Some(0x06),
    Some(0x03),
    Some(0x55),
    Some(0x1d),
    Some(0x23),
    Some(0x04),
    None,
    Some(0x30),
    None,
    Some(0x80),
    None,
];

/// The time from which to renew, and the end of that time, in seconds since 1970.
pub(super) async fn window(
    acme: &AcmeConfig,
    kept: &Kept,
    present: &Present,
) -> Result<Option<(u64, u64)>, AcmeError> {
    let is_known = |account: &super::kept::KeptAccount| account.directory == acme.directory;
    let Some(id) = identifier(&present.der) else {
        return Ok(None);
    };
    if !kept.account().as_ref().is_some_and(is_known) {
        return Ok(None);
    }
    let account = order::account(acme, kept).await?;
    match account.renewal_info(&id).await {
        Ok((info, _)) => {
            let window = info.suggested_window;
            let start = u64::try_from(window.start.unix_timestamp());
            let end = u64::try_from(window.end.unix_timestamp());
            Ok(start.ok().zip(end.ok()))
        }
        Err(Error::Unsupported(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The name of a certificate in the protocol, if its issuer has a key identifier.
pub(super) fn identifier(
    certificate: &CertificateDer<'_>,
) -> Option<CertificateIdentifier<'static>> {
    let serial = EndEntityCert::try_from(certificate).ok()?.serial().to_vec();
    let key = issuer_key(certificate)?;
    Some(CertificateIdentifier::new(Der::from(key.to_vec()), Der::from(serial)).into_owned())
}

fn issuer_key(certificate: &[u8]) -> Option<&[u8]> {
    let is_header = |bytes: &&[u8]| {
        let mut pairs = bytes.iter().zip(ISSUER_KEY);
        pairs.all(|(byte, expected)| expected.is_none_or(|expected| expected == *byte))
    };
    let length = ISSUER_KEY.len();
    let at = certificate
        .windows(length)
        .position(|bytes| is_header(&bytes))?
        + length;
    let count = usize::from(*certificate.get(at.checked_sub(1)?)?);
    certificate.get(at..at + count)
}
