//! The ID token of a provider: its signature, and its claims about one sign-in.

use super::pending::hashed;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::jwk::{Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Header, Validation};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Signatures of the provider's own key. A token signed with the client's secret proves less.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];
/// Length of a public key of Ed25519, bytes.
const ED25519: usize = 32;

/// The values that a token must have.
pub struct Expected<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub nonce: &'a str,
}

/// The address of an account, from a token or from the endpoint of claims.
#[derive(Debug, Default, Deserialize)]
pub struct Address {
    #[serde(default, deserialize_with = "text")]
    pub email: Option<String>,
    #[serde(default, deserialize_with = "boolean")]
    email_verified: Option<bool>,
    /// Microsoft's providers have this claim instead: the owner of the domain is verified.
    #[serde(default, deserialize_with = "boolean")]
    xms_edov: Option<bool>,
}

impl Address {
    /// Whether the provider has verified the address, if it says so.
    pub fn verified(&self) -> Option<bool> {
        self.email_verified.or(self.xms_edov)
    }

    /// The address with what it lacks.
    pub fn or(self, other: Self) -> Self {
        Self {
            email: self.email.or(other.email),
            email_verified: self.email_verified.or(other.email_verified),
            xms_edov: self.xms_edov.or(other.xms_edov),
        }
    }
}

/// Reads a text. A value of another kind is none.
fn text<'de, D: Deserializer<'de>>(claim: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(claim)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

/// Reads a boolean, which some providers send as a text or a number. Other values are false.
fn boolean<'de, D: Deserializer<'de>>(claim: D) -> Result<Option<bool>, D::Error> {
    Ok(match Value::deserialize(claim)? {
        Value::Null => None,
        Value::Bool(value) => Some(value),
        Value::String(text) => Some(text == "1" || text.eq_ignore_ascii_case("true")),
        other => Some(other == 1),
    })
}

/// The claims of a valid token.
#[derive(Debug, Deserialize)]
pub struct Claims {
    pub sub: String,
    #[serde(flatten)]
    pub address: Address,
    iss: String,
    aud: Audience,
    azp: Option<String>,
    nonce: Option<String>,
    /// The standard requires it.
    #[serde(rename = "iat")]
    _iat: f64,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// The reason why a token is not valid.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("it is not a signed token")]
    Malformed(#[source] Error),
    #[error("its header has {0}")]
    Header(&'static str),
    #[error("no key of the provider has signed it")]
    UnknownKey,
    #[error("its claims are not valid")]
    Claims(#[source] Error),
    #[error("it is for another {0}")]
    Other(&'static str),
}

/// Checks a token against the keys of the provider.
pub fn verify(token: &str, keys: &[Jwk], expected: &Expected<'_>) -> Result<Claims, TokenError> {
    let header = jsonwebtoken::decode_header(token).map_err(TokenError::Malformed)?;
    check_header(&header)?;
    let mut validation = Validation::new(header.alg);
    validation.leeway = 0;
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation.set_issuer(&[expected.issuer]);
    validation.set_audience(&[expected.client_id]);
    for key in keys.iter().filter_map(|key| key_for(key, &header)) {
        match jsonwebtoken::decode::<Claims>(token, &key, &validation) {
            Ok(token) => return token.claims.checked(expected),
            Err(error) if is_of_other_key(&error) => {}
            Err(error) => return Err(TokenError::Claims(error)),
        }
    }
    Err(TokenError::UnknownKey)
}

fn check_header(header: &Header) -> Result<(), TokenError> {
    let is_jwt = |typ: &String| typ.eq_ignore_ascii_case("JWT");
    let wrong = match header {
        _ if !ALGORITHMS.contains(&header.alg) => "an algorithm that proves too little",
        Header { crit: Some(_), .. } => "critical parameters, which are not known",
        Header { cty: Some(_), .. } => "a content type",
        Header { typ: Some(typ), .. } if !is_jwt(typ) => "another type",
        _ => return Ok(()),
    };
    Err(TokenError::Header(wrong))
}

/// The key, if the provider may have signed a token with this header by it.
fn key_for(key: &Jwk, header: &Header) -> Option<DecodingKey> {
    let common = &key.common;
    let has_id = header.kid.is_none() || common.key_id == header.kid;
    let signs = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
    let is_for = |algorithm: KeyAlgorithm| algorithm == header.alg.into();
    if !has_id || !signs || !common.key_algorithm.is_none_or(is_for) {
        return None;
    }
    let key = DecodingKey::from_jwk(key).ok()?;
    // The library expects whole keys.
    let is_short = key.family() == AlgorithmFamily::Ed
        && key.try_get_as_bytes().is_ok_and(|key| key.len() != ED25519);
    (key.family() == header.alg.family() && !is_short).then_some(key)
}

fn is_of_other_key(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidSignature | ErrorKind::InvalidEcdsaKey | ErrorKind::InvalidEddsaKey
    )
}

impl Claims {
    fn checked(self, expected: &Expected<'_>) -> Result<Self, TokenError> {
        let is_client = |id: &String| id == expected.client_id;
        let for_client = match &self.aud {
            Audience::One(id) => is_client(id),
            // Other audiences could use the token too.
            Audience::Many(ids) => !ids.is_empty() && ids.iter().all(is_client),
        };
        // Digests are compared, so the time tells nothing about the nonce.
        let nonce = self.nonce.as_deref().map(hashed);
        let other = if self.iss != expected.issuer {
            "issuer"
        } else if !for_client || !self.azp.iter().all(is_client) {
            "client"
        } else if nonce != Some(hashed(expected.nonce)) {
            "sign-in"
        } else {
            return Ok(self);
        };
        Err(TokenError::Other(other))
    }
}
