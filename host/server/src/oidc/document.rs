//! The document of a provider, and its keys.

use super::fetch::{FetchError, Fetcher};
use jsonwebtoken::jwk::Jwk;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use wharf_config::is_protected;

/// The document's place below the issuer.
const PLACE: &str = ".well-known/openid-configuration";

/// The parts of the document that a sign-in needs.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    jwks_uri: String,
    #[serde(skip)]
    pub(super) keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Keys {
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

impl Document {
    /// Reads the document and the keys of an issuer.
    pub(super) async fn read(fetcher: &Fetcher, issuer: &str) -> Result<Arc<Self>, DocumentError> {
        let place = format!("{}/{PLACE}", issuer.trim_end_matches('/'));
        let mut document: Self = fetcher.get(&place).await.map_err(DocumentError::Document)?;
        if document.issuer != issuer {
            return Err(DocumentError::Issuer);
        }
        let page = document.authorization_endpoint.parse();
        if !page.is_ok_and(|uri| is_protected(&uri)) {
            return Err(DocumentError::Page);
        }
        let keys = fetcher.get(&document.jwks_uri);
        let Keys { keys } = keys.await.map_err(DocumentError::Keys)?;
        // Keys of other kinds are for other uses.
        let known = keys
            .into_iter()
            .filter_map(|key| serde_json::from_value(key).ok());
        document.keys = known.collect();
        Ok(Arc::new(document))
    }
}
