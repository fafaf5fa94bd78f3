//! Sign-in with an account at a provider of OpenID Connect: the authorization code flow with PKCE. The
//! provider's document is read when it is needed first, so that a start needs no provider.

mod document;
mod fetch;
mod pending;
mod token;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use document::Document;
use fetch::{FetchError, Fetcher, OK};
use form_urlencoded::Serializer;
use pending::{ExpectedAnswer, Pending};
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::error::Error as StdError;
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use token::{Address, Claims, Expected, TokenError};
use tokio::sync::Mutex;
use wharf_accounts::identity::{IdentityError, ProvenIdentity};
use wharf_config::{BaseUrl, OidcConfig};
use wharf_domain::email::canonical;
use wharf_domain::error::chain;
use wharf_domain::secret::SecretText;

pub use pending::LIFETIME;

/// The path to which the provider sends the browser back.
pub const CALLBACK: &str = "/auth/oidc/callback/";

/// The time for which the provider's document and keys are used.
const FRESH: Duration = Duration::from_hours(1);

/// The time in which a sign-in waits for others that read the document.
const WAIT: Duration = Duration::from_secs(10);

/// The errors of the standards by which a user or the provider refuses a sign-in.
const DENIALS: [&str; 5] = [
    "access_denied",
    "consent_required",
    "interaction_required",
    "login_required",
    "account_selection_required",
];

/// The longest secret in bytes.
const MAX_SECRET: usize = 4096;

/// The reason why a sign-in with the provider fails. The page of the sign-in has words for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInFailure {
    /// The provider does not answer.
    Unreachable,
    /// The certificate of the provider is not trusted.
    Untrusted,
    /// The provider answers in another way than the standard has it.
    Unusable,
    /// The provider is another issuer than that of the configuration.
    OtherIssuer,
    /// The provider does not accept the id or the secret of this client.
    Client,
    /// The provider reports an error.
    Failed,
    /// The request to sign in is unknown, used, of another browser, or has expired.
    Expired,
    /// The provider or the user has refused.
    Denied,
    /// The provider does not accept the code of the sign-in.
    Code,
    /// The token of the provider is not valid.
    Token,
    /// The provider gives no address of the account.
    NoAddress,
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
            Self::Untrusted => "untrusted",
            Self::Unusable => "unusable",
            Self::OtherIssuer => "other-issuer",
            Self::Client => "client",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Denied => "denied",
            Self::Code => "code",
            Self::Token => "token",
            Self::NoAddress => "no-address",
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
    access_token: Option<String>,
}

/// The claims about an account at the endpoint of claims.
#[derive(Deserialize)]
struct UserInfo {
    sub: String,
    #[serde(flatten)]
    address: Address,
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
        let mut url = page.map_err(|error| {
            warn("its page has no URL", &error);
            SignInFailure::Unusable
        })?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("scope", "openid email")
            .append_pair("client_id", &config.client_id)
            .append_pair("redirect_uri", &callback(console))
            .append_pair("state", state.expose())
            .append_pair("nonce", nonce.expose())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        let waiting = ExpectedAnswer::new(nonce, verifier, browser.expose());
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
            return Err(SignInFailure::OtherIssuer);
        }
        let error = parameter("error");
        let Some(code) = parameter("code").filter(|_| error.is_none()) else {
            tracing::info!(?error, "the provider refused a sign-in");
            let is_denied = error.is_some_and(|error| DENIALS.contains(&&*error));
            return Err(if is_denied {
                SignInFailure::Denied
            } else {
                SignInFailure::Failed
            });
        };
        let document = self.document(config, false).await?;
        let tokens = self.exchange(config, console, &document, &code, &waiting);
        let TokenResponse {
            id_token,
            access_token,
        } = tokens.await?;
        let token = id_token.ok_or_else(|| {
            tracing::warn!("the provider gives no ID token; it must support the scope `openid`");
            SignInFailure::Unusable
        })?;
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
        let mut claims = verified.map_err(|error| invalid(&error))?;
        let is_whole = claims.address.email.is_some() && claims.address.verified().is_some();
        if let Some(endpoint) = document.userinfo_endpoint.as_deref().filter(|_| !is_whole)
            && let Some(token) = access_token
        {
            let given = self.address(endpoint, &token, &claims.sub).await?;
            claims.address = given.or(claims.address);
        }
        proven(config, claims)
    }

    /// Reads the address of an account from the endpoint of claims.
    async fn address(
        &self,
        endpoint: &str,
        access_token: &str,
        subject: &str,
    ) -> Result<Address, SignInFailure> {
        let read = self.fetcher.get(endpoint, Some(access_token)).await;
        let UserInfo { sub, address } = read.map_err(|error: FetchError| {
            warn("it gives no claims about an account", &error);
            error.failure()
        })?;
        // The standard asks for this check: the claims could be about another account.
        if sub != subject {
            tracing::warn!("the provider gives claims about another account");
            return Err(SignInFailure::Unusable);
        }
        Ok(address)
    }

    /// Exchanges a code for tokens.
    async fn exchange(
        &self,
        config: &OidcConfig,
        console: &BaseUrl,
        document: &Document,
        code: &str,
        waiting: &ExpectedAnswer,
    ) -> Result<TokenResponse, SignInFailure> {
        let secret = secret(config).await?;
        let mut client = Some((config.client_id.as_str(), secret.expose()));
        let in_form = if document.reads_secret_from_form() {
            client.take()
        } else {
            None
        };
        let in_form = in_form.map(|(id, secret)| [("client_id", id), ("client_secret", secret)]);
        let form = Serializer::new(String::new())
            .append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &callback(console))
            .append_pair("code_verifier", waiting.verifier.expose())
            .extend_pairs(in_form.into_iter().flatten())
            .finish();
        let endpoint = &document.token_endpoint;
        let response = self.fetcher.post(endpoint, client, form).await;
        let (status, body) = response.map_err(|error| {
            warn("it gives no token", &error);
            error.failure()
        })?;
        if status != OK {
            return Err(refusal(status, &body));
        }
        serde_json::from_slice(&body).map_err(|error| {
            warn("it gives no token", &error);
            SignInFailure::Unusable
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
        let mut discovered = turn.map_err(|error| {
            warn("others wait for it", &error);
            SignInFailure::Unreachable
        })?;
        let issuer = config.issuer.as_str();
        if let Some(known) = discovered.as_ref()
            && known.issuer == issuer
            && known.at.elapsed() < FRESH
            && !again
        {
            return Ok(Arc::clone(&known.document));
        }
        let read = Document::read(&self.fetcher, issuer).await;
        let document = read.map_err(|error| {
            warn("its document cannot be used", &error);
            error.failure()
        })?;
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
    let is_verified = claims.address.verified() == Some(true);
    let Some(email) = claims.address.email else {
        tracing::info!(
            "the provider gives no address of an account; is the scope `email` allowed?"
        );
        return Err(SignInFailure::NoAddress);
    };
    if !is_verified {
        tracing::info!("the provider has not verified the address of an account");
        return Err(SignInFailure::Unverified);
    }
    let Ok(email) = canonical(&email) else {
        tracing::info!("the address of an account is not valid");
        return Err(SignInFailure::NotAllowed);
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

/// The failure for the refusal of the token endpoint. Its body may have any form.
fn refusal(status: u16, body: &[u8]) -> SignInFailure {
    let body = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let error = body.get("error").and_then(Value::as_str);
    tracing::warn!(status, error, "the provider refused a code");
    match error {
        Some("invalid_grant") => SignInFailure::Code,
        Some("invalid_client" | "unauthorized_client") => SignInFailure::Client,
        _ => SignInFailure::Failed,
    }
}

fn warn(what: &str, error: &(dyn StdError + 'static)) {
    tracing::warn!(error = %chain(error), "the provider cannot be used: {what}");
}
