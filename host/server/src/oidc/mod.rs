//! Sign-in with an account at a provider of OpenID Connect: the authorization code flow with PKCE. The
//! provider's document is read when it is needed first, so that a start needs no provider.

mod document;
mod fetch;
mod pending;
mod token;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use document::Document;
use fetch::{Fetcher, OK};
use form_urlencoded::Serializer;
use pending::{Pending, Waiting};
use reqwest::Url;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::error::Error as StdError;
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use token::{Claims, Expected, TokenError};
use tokio::sync::Mutex;
use wharf_config::{BaseUrl, OidcConfig};
use wharf_control::{IdentityError, ProvenIdentity};
use wharf_domain::secret::SecretText;

pub use pending::LIFETIME;

/// The path to which the provider sends the browser back.
pub const CALLBACK: &str = "/auth/oidc/callback/";

/// The time for which the provider's document and keys are used.
const FRESH: Duration = Duration::from_hours(1);

/// The time in which a sign-in waits for others that read the document.
const WAIT: Duration = Duration::from_secs(10);

/// The longest secret in bytes.
const MAX_SECRET: usize = 4096;

/// The reason why a sign-in with the provider fails. The page of the sign-in has words for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInFailure {
    /// The provider does not answer, or not as the standard says.
    Unreachable,
    /// The request to sign in is unknown, used, of another browser, or has expired.
    Expired,
    /// The provider or the user has refused.
    Denied,
    /// The token of the provider is not valid.
    Token,
    /// The provider has not verified the address.
    Unverified,
    /// The address is not on the allow-list.
    NotAllowed,
    /// No user has the address.
    NoUser,
    /// The user with the address has another identity of the provider.
    OtherIdentity,
    /// The user is disabled.
    Disabled,
    /// The service has a fault.
    Internal,
}

impl SignInFailure {
    /// The word in the fragment of the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Expired => "expired",
            Self::Denied => "denied",
            Self::Token => "token",
            Self::Unverified => "unverified",
            Self::NotAllowed => "not-allowed",
            Self::NoUser => "no-user",
            Self::OtherIdentity => "other-identity",
            Self::Disabled => "disabled",
            Self::Internal => "internal",
        }
    }
}

impl From<IdentityError> for SignInFailure {
    fn from(error: IdentityError) -> Self {
        match error {
            IdentityError::NoUser => Self::NoUser,
            IdentityError::OtherIdentity => Self::OtherIdentity,
            IdentityError::Disabled => Self::Disabled,
            IdentityError::Other(error) => {
                tracing::error!(error = %error.chain(), "a sign-in with the provider failed");
                Self::Internal
            }
        }
    }
}

/// A sign-in that begins.
#[derive(Debug)]
pub struct Begun {
    /// The page of the provider.
    pub url: String,
    /// The secret that ties the sign-in to the browser, for its cookie.
    pub browser: SecretText,
}

struct Discovered {
    issuer: String,
    at: Instant,
    document: Arc<Document>,
}

/// The response of the token endpoint.
#[derive(Deserialize)]
struct TokenResponse {
    id_token: Option<String>,
}

/// The refusal of the token endpoint.
#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// The provider of the configuration.
pub struct Provider {
    fetcher: Fetcher,
    discovered: Mutex<Option<Discovered>>,
    pending: Pending,
}

impl Provider {
    pub fn new() -> Self {
        Self {
            fetcher: Fetcher::new(),
            discovered: Mutex::new(None),
            pending: Pending::default(),
        }
    }

    /// Begins a sign-in.
    pub async fn begin(
        &self,
        config: &OidcConfig,
        console: &BaseUrl,
        network: Option<IpAddr>,
    ) -> Result<Begun, SignInFailure> {
        let document = self.document(config, false).await?;
        let [state, nonce, verifier, browser] = [random()?, random()?, random()?, random()?];
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose()));
        let page = Url::parse(&document.authorization_endpoint);
        let mut url = page.map_err(|error| unusable("its page has no URL", &error))?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("scope", "openid email")
            .append_pair("client_id", &config.client_id)
            .append_pair("redirect_uri", &callback(console))
            .append_pair("state", state.expose())
            .append_pair("nonce", nonce.expose())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        let waiting = Waiting::new(nonce, verifier, browser.expose());
        self.pending.put(state.expose(), waiting, network);
        Ok(Begun {
            url: url.into(),
            browser,
        })
    }

    /// Finishes the sign-in of a browser that the provider sent back with this query.
    pub async fn finish(
        &self,
        config: &OidcConfig,
        console: &BaseUrl,
        query: &str,
        browser: Option<&str>,
    ) -> Result<ProvenIdentity, SignInFailure> {
        let parameter = |name: &str| {
            let mut all = form_urlencoded::parse(query.as_bytes());
            all.find(|(key, _)| key == name).map(|(_, value)| value)
        };
        let state = parameter("state").ok_or(SignInFailure::Expired)?;
        let waiting = self
            .pending
            .take(&state, browser)
            .ok_or(SignInFailure::Expired)?;
        let other_issuer = parameter("iss").is_some_and(|iss| iss != config.issuer.as_str());
        if other_issuer {
            return Err(SignInFailure::Token);
        }
        let Some(code) = parameter("code").filter(|_| parameter("error").is_none()) else {
            tracing::info!(error = ?parameter("error"), "the provider refused a sign-in");
            return Err(SignInFailure::Denied);
        };
        let document = self.document(config, false).await?;
        let token = self.exchange(config, console, &document, &code, &waiting);
        let token = token.await?;
        let expected = Expected {
            issuer: config.issuer.as_str(),
            client_id: &config.client_id,
            nonce: waiting.nonce.expose(),
        };
        let mut verified = token::verify(&token, &document.keys, &expected);
        if matches!(verified, Err(TokenError::UnknownKey)) {
            // The provider may have a new key.
            let document = self.document(config, true).await?;
            verified = token::verify(&token, &document.keys, &expected);
        }
        proven(config, verified.map_err(|error| invalid(&error))?)
    }

    /// Exchanges a code for the ID token.
    async fn exchange(
        &self,
        config: &OidcConfig,
        console: &BaseUrl,
        document: &Document,
        code: &str,
        waiting: &Waiting,
    ) -> Result<String, SignInFailure> {
        let secret = secret(config).await?;
        let form = Serializer::new(String::new())
            .append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &callback(console))
            .append_pair("code_verifier", waiting.verifier.expose())
            .finish();
        let client = (config.client_id.as_str(), secret.expose());
        let response = self.fetcher.post(&document.token_endpoint, client, form);
        let given = |error: &(dyn StdError + 'static)| unusable("it gives no token", error);
        let (status, body) = response.await.map_err(|error| given(&error))?;
        if status != OK {
            let refusal = serde_json::from_slice::<Refusal>(&body);
            let Refusal { error } = refusal.map_err(|error| given(&error))?;
            tracing::warn!(error, "the provider refused a code");
            return Err(SignInFailure::Token);
        }
        let response = serde_json::from_slice::<TokenResponse>(&body);
        let token = response.map_err(|error| given(&error))?.id_token;
        token.ok_or_else(|| {
            tracing::warn!("the provider gives no ID token");
            SignInFailure::Token
        })
    }

    /// The provider's document and keys.
    async fn document(
        &self,
        config: &OidcConfig,
        again: bool,
    ) -> Result<Arc<Document>, SignInFailure> {
        // Many persons may wait for a provider that does not answer.
        let turn = tokio::time::timeout(WAIT, self.discovered.lock()).await;
        let mut discovered = turn.map_err(|error| unusable("others wait for it", &error))?;
        let issuer = config.issuer.as_str();
        if let Some(known) = discovered.as_ref()
            && known.issuer == issuer
            && known.at.elapsed() < FRESH
            && !again
        {
            return Ok(Arc::clone(&known.document));
        }
        let read = Document::read(&self.fetcher, issuer).await;
        let document = read.map_err(|error| unusable("it does not follow the standard", &error))?;
        *discovered = Some(Discovered {
            issuer: issuer.to_owned(),
            at: Instant::now(),
            document: Arc::clone(&document),
        });
        Ok(document)
    }
}

/// The URL to which the provider sends the browser back.
fn callback(console: &BaseUrl) -> String {
    format!("{console}{CALLBACK}")
}

/// 256 random bits as text for URLs.
fn random() -> Result<SecretText, SignInFailure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "no random numbers");
        SignInFailure::Internal
    })?;
    Ok(SecretText::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// Reads the secret for each use, so that a new one needs no restart.
async fn secret(config: &OidcConfig) -> Result<SecretText, SignInFailure> {
    let path = config.client_secret_file.clone();
    let failed = |error: &dyn Display| {
        tracing::error!("setting `oidc.client_secret_file`: {error}");
        SignInFailure::Internal
    };
    wharf_secure_fs::check_secret(&path).map_err(|error| failed(&error))?;
    let text = tokio::fs::read_to_string(&path).await;
    let text = text.map_err(|error| failed(&error))?;
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_SECRET {
        return Err(failed(&"the file must have a secret of at most 4096 bytes"));
    }
    Ok(SecretText::new(text))
}

/// The identity of valid claims, if its address is verified and allowed.
fn proven(config: &OidcConfig, claims: Claims) -> Result<ProvenIdentity, SignInFailure> {
    let email = claims.email.filter(|_| claims.email_verified == Some(true));
    let Some(email) = email else {
        tracing::info!("the provider has not verified the address of an account");
        return Err(SignInFailure::Unverified);
    };
    if !config.allows(&email) {
        tracing::info!("an address is not on the allow-list of `oidc`");
        return Err(SignInFailure::NotAllowed);
    }
    Ok(ProvenIdentity {
        issuer: config.issuer.as_str().to_owned(),
        subject: claims.sub,
        email,
    })
}

fn invalid(error: &TokenError) -> SignInFailure {
    tracing::warn!(error = %chain(error), "the token of the provider is not valid");
    SignInFailure::Token
}

fn unusable(what: &str, error: &(dyn StdError + 'static)) -> SignInFailure {
    tracing::warn!(error = %chain(error), "the provider cannot be used: {what}");
    SignInFailure::Unreachable
}

fn chain(error: &(dyn StdError + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}
