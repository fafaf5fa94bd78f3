//! The document of a provider, and its keys.

use super::SignInFailure;
use super::fetch::{FetchError, Fetcher};
use jsonwebtoken::jwk::Jwk;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use wharf_config::is_protected;

/// The document's place below the issuer.
const PLACE: &str = ".well-known/openid-configuration";

/// The members of a key that a signature needs.
const MEMBERS: [&str; 9] = ["kty", "use", "alg", "kid", "crv", "x", "y", "n", "e"];

/// The parts of the document that a sign-in needs.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    jwks_uri: String,
    /// Some providers have claims only there.
    pub(super) userinfo_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<Value>,
    #[serde(skip)]
    pub(super) keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

/// The reason why a document cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DocumentError {
    #[error("its document cannot be read")]
    Document(#[source] FetchError),
    #[error("its document is about another issuer")]
    Issuer,
    #[error("its page is not protected by https")]
    Page,
    #[error("its keys cannot be read")]
    Keys(#[source] FetchError),
}

/// A key by the members that a signature needs. Keys of other kinds are for other uses.
fn known(key: Value) -> Option<Jwk> {
    let Value::Object(mut members) = key else {
        return None;
    };
    members.retain(|name, _| MEMBERS.contains(&name.as_str()));
    serde_json::from_value(members.into()).ok()
}

impl DocumentError {
    /// The failure of a sign-in for this reason.
    pub(super) fn failure(&self) -> SignInFailure {
        match self {
            Self::Document(error) | Self::Keys(error) => error.failure(),
            Self::Issuer => SignInFailure::OtherIssuer,
            Self::Page => SignInFailure::Unusable,
        }
    }
}

impl Document {
    /// Reads the document and the keys of an issuer.
    pub(super) async fn read(fetcher: &Fetcher, issuer: &str) -> Result<Arc<Self>, DocumentError> {
        let place = format!("{}/{PLACE}", issuer.trim_end_matches('/'));
        let mut document: Self = fetcher
            .get(&place, None)
            .await
            .map_err(DocumentError::Document)?;
        if document.issuer != issuer {
            return Err(DocumentError::Issuer);
        }
        let page = document.authorization_endpoint.parse();
        if !page.is_ok_and(|uri| is_protected(&uri)) {
            return Err(DocumentError::Page);
        }
        let keys = fetcher.get(&document.jwks_uri, None);
        let KeySet { keys } = keys.await.map_err(DocumentError::Keys)?;
        document.keys = keys.into_iter().filter_map(known).collect();
        Ok(Arc::new(document))
    }

    /// Whether the secret of a client belongs into the form, because the provider reads no header.
    pub(super) fn reads_secret_from_form(&self) -> bool {
        let methods = &self.token_endpoint_auth_methods_supported;
        let has = |method: &str| methods.iter().any(|supported| supported == method);
        has("client_secret_post") && !has("client_secret_basic")
    }
}
