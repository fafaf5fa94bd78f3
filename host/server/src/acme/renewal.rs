//! Renewal information (RFC 9773): the time at which an authority wants a certificate to be renewed.

use super::files::{AcmeFiles, PresentCertificate};
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
    files: &AcmeFiles,
    present: &PresentCertificate,
) -> Result<Option<(u64, u64)>, AcmeError> {
    let is_known = |account: &super::files::AcmeAccount| account.directory == acme.directory;
    let Some(id) = identifier(&present.der) else {
        return Ok(None);
    };
    if !files.account().as_ref().is_some_and(is_known) {
        return Ok(None);
    }
    let account = order::account(acme, files).await?;
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

#[cfg(test)]
mod tests {
    use super::identifier;
    use rcgen::{
        BasicConstraints, CertificateParams, IsCa, Issuer, KeyIdMethod, KeyPair, SerialNumber,
    };

    #[test]
    fn a_certificate_has_the_name_of_the_standard() {
        let mut issuer = CertificateParams::default();
        issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        issuer.key_identifier_method = KeyIdMethod::PreSpecified(vec![0xc0, 0xff, 0xee]);
        let issuer = Issuer::new(issuer, KeyPair::generate().unwrap());
        let mut issued = CertificateParams::new(["example.com".to_owned()]).unwrap();
        issued.serial_number = Some(SerialNumber::from_slice(&[0xca, 0xfe]));
        let sign = |issued: &CertificateParams| {
            let key = KeyPair::generate().unwrap();
            issued.signed_by(&key, &issuer).unwrap()
        };
        assert!(identifier(sign(&issued).der()).is_none());
        issued.use_authority_key_identifier_extension = true;
        let name = identifier(sign(&issued).der()).unwrap();
        assert_eq!(name.to_string(), "wP_u.AMr-");
    }
}
