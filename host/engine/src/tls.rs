//! TLS to an engine: the client's certificate, the trust in the server's, and the causes of failures.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::Arc;

/// The certificate and key with which Wharf introduces itself.
pub struct ClientIdentity {
    /// The certificate and those of its issuers.
    pub chain: Vec<CertificateDer<'static>>,
    /// The private key.
    pub key: PrivateKeyDer<'static>,
}

impl Debug for ClientIdentity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// The engines that Wharf believes.
#[derive(Debug)]
pub enum Trust {
    /// Those with a valid certificate from these issuers for this name.
    Issuers(Vec<CertificateDer<'static>>, ServerName<'static>),
    /// Those with exactly this certificate, whatever its name and dates.
    Pinned(CertificateDer<'static>),
}

/// The settings for connections to one engine.
pub type ClientTls = Arc<ClientConfig>;

/// Makes the settings from certificates.
pub fn client_config(identity: ClientIdentity, trust: Trust) -> Result<ClientTls, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let accepted = match trust {
        Trust::Issuers(issuers, name) => {
            let mut roots = RootCertStore::empty();
            for issuer in issuers {
                roots.add(issuer)?;
            }
            let provider = Arc::clone(&provider);
            let issued = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
            let issued = issued.build();
            AcceptedCertificate::Issued(
                issued.map_err(|error| Error::General(error.to_string()))?,
                name,
            )
        }
        Trust::Pinned(certificate) => AcceptedCertificate::Pinned(certificate),
    };
    let verifier = Arc::new(Verifier { accepted, provider });
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    Ok(Arc::new(
        builder.with_client_auth_cert(identity.chain, identity.key)?,
    ))
}

/// Accepts certificates of one engine. The handshake proves that the server has the key.
#[derive(Debug)]
struct Verifier {
    accepted: AcceptedCertificate,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum AcceptedCertificate {
    /// Certificates for this name.
    Issued(Arc<WebPkiServerVerifier>, ServerName<'static>),
    /// One certificate.
    Pinned(CertificateDer<'static>),
}

impl ServerCertVerifier for Verifier {
    /// An HTTP client may take the name of the connection from the address.
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.accepted {
            AcceptedCertificate::Issued(issued, name) => {
                issued.verify_server_cert(end_entity, intermediates, name, ocsp, now)
            }
            AcceptedCertificate::Pinned(certificate) if end_entity == certificate => {
                Ok(ServerCertVerified::assertion())
            }
            AcceptedCertificate::Pinned(_) => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// The cause of a failed connection in words, if it is TLS.
pub(super) fn explain(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(wrong) => certificate(wrong),
        Error::AlertReceived(alert) => refused(*alert),
        Error::InvalidMessage(_) => {
            "the engine does not speak TLS at this port; it may be plain HTTP".to_owned()
        }
        other => format!("TLS: {other}"),
    })
}

/// The fault of the engine's certificate.
fn certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the engine's certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the engine's certificate is not valid yet; compare the clocks".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "the engine's certificate is for {}, not for {}; tls.server_name sets the expected name",
            presented.join(", "),
            expected.to_str(),
        ),
        CertificateError::NotValidForName => {
            "the engine's certificate has another name; tls.server_name sets the expected one"
                .to_owned()
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the engine's certificate is not from the issuer in tls.ca".to_owned()
        }
        CertificateError::ApplicationVerificationFailure => {
            "the engine's certificate is not the one in tls.server_cert".to_owned()
        }
        other => format!("the engine's certificate is invalid: {other}"),
    }
}

/// The engine's reason to end the handshake.
fn refused(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateExpired => {
            "the engine says that the certificate in tls.cert has expired".to_owned()
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateRequired
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => format!(
            "the engine refuses the certificate in tls.cert (alert {alert:?}): its issuer is not the one \
             that the engine trusts, or it has expired"
        ),
        other => format!("the engine ended the TLS handshake (alert {other:?})"),
    }
}
