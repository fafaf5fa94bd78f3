//! Sign-in with an account at a provider of OpenID Connect: the authorization code flow with PKCE. The
//! provider's document is read when it is needed first, so that a start needs no provider.

mod fetch;
mod pending;

use fetch::Fetcher;
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreIdTokenClaims, CoreIdTokenVerifier,
    CoreJwsSigningAlgorithm as Algorithm, CoreProviderMetadata,
};
use openidconnect::{
    AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, IssuerUrl, Nonce, PkceCodeChallenge,
    RedirectUrl, RequestTokenError, Scope, SignatureVerificationError, TokenResponse,
};
use pending::{Pending, Waiting};
use std::error::Error as StdError;
use std::fmt::Display;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use wharf_config::{BaseUrl, OidcConfig, is_protected};
use wharf_control::{IdentityError, ProvenIdentity};
use wharf_domain::secret::SecretText;

pub use pending::LIFETIME;

/// The path to which the provider sends the browser back.
pub const CALLBACK: &str = "/auth/oidc/callback/";

/// The time for which the provider's document and keys are used.
const FRESH: Duration = Duration::from_hours(1);

/// The time in which a sign-in waits for others that read the document.
const WAIT: Duration = Duration::from_secs(10);

/// Signatures of the provider's own key. A token signed with the client's secret proves less.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RsaSsaPkcs1V15Sha256,
    Algorithm::RsaSsaPkcs1V15Sha384,
    Algorithm::RsaSsaPkcs1V15Sha512,
    Algorithm::RsaSsaPssSha256,
    Algorithm::RsaSsaPssSha384,
    Algorithm::RsaSsaPssSha512,
    Algorithm::EcdsaP256Sha256,
    Algorithm::EcdsaP384Sha384,
    Algorithm::EdDsa,
];

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

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

struct Discovered {
    issuer: String,
    at: Instant,
    metadata: CoreProviderMetadata,
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
    ) -> Result<Begun, SignInFailure> {
        let metadata = self.metadata(config, false).await?;
        let client = client(config, console, metadata).await?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let request = client.authorize_url(
            CoreAuthenticationFlow::AuthorizationCode,
            || CsrfToken::new_random_len(32),
            || Nonce::new_random_len(32),
        );
        let (url, state, nonce) = request
            .add_scope(Scope::new("email".to_owned()))
            .set_pkce_challenge(challenge)
            .url();
        let waiting = Waiting::new(nonce, verifier);
        let browser = self
            .pending
            .put(state.secret(), waiting)
            .ok_or(SignInFailure::Internal)?;
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
        let metadata = self.metadata(config, false).await?;
        let client = client(config, console, metadata).await?;
        let request = client
            .exchange_code(AuthorizationCode::new(code.into_owned()))
            .map_err(|error| unusable("it names no token endpoint", &error))?
            .set_pkce_verifier(waiting.verifier);
        let response = request.request_async(&self.fetcher);
        let response = response.await.map_err(|error| match error {
            RequestTokenError::ServerResponse(refused) => {
                tracing::warn!(error = %refused.error(), "the provider refused a code");
                SignInFailure::Token
            }
            other => unusable("it gives no token", &other),
        })?;
        let Some(token) = response.id_token() else {
            tracing::warn!("the provider gives no ID token");
            return Err(SignInFailure::Token);
        };
        match token.claims(&verifier(&client), &waiting.nonce) {
            Ok(claims) => proven(config, claims),
            Err(error) if has_unknown_key(&error) => {
                // The provider may have a new key.
                let metadata = self.metadata(config, true).await?;
                let client = self::client(config, console, metadata).await?;
                let claims = token.claims(&verifier(&client), &waiting.nonce);
                proven(config, claims.map_err(|error| invalid(&error))?)
            }
            Err(error) => Err(invalid(&error)),
        }
    }

    /// The provider's document and keys.
    async fn metadata(
        &self,
        config: &OidcConfig,
        again: bool,
    ) -> Result<CoreProviderMetadata, SignInFailure> {
        // Many persons may wait for a provider that does not answer.
        let turn = tokio::time::timeout(WAIT, self.discovered.lock()).await;
        let mut discovered = turn.map_err(|error| unusable("others wait for it", &error))?;
        let issuer = config.issuer.as_str();
        if let Some(known) = discovered.as_ref()
            && known.issuer == issuer
            && known.at.elapsed() < FRESH
            && !again
        {
            return Ok(known.metadata.clone());
        }
        let url = IssuerUrl::new(issuer.to_owned());
        let url = url.map_err(|error| unusable("its URL cannot be read", &error))?;
        let read = CoreProviderMetadata::discover_async(url, &self.fetcher);
        let metadata = read
            .await
            .map_err(|error| unusable("its document or its keys cannot be read", &error))?;
        let page = metadata.authorization_endpoint().as_str();
        if !page.parse().is_ok_and(|uri| is_protected(&uri)) {
            tracing::warn!(issuer, "the page of the provider is not protected by https");
            return Err(SignInFailure::Unreachable);
        }
        *discovered = Some(Discovered {
            issuer: issuer.to_owned(),
            at: Instant::now(),
            metadata: metadata.clone(),
        });
        Ok(metadata)
    }
}

async fn client(
    config: &OidcConfig,
    console: &BaseUrl,
    metadata: CoreProviderMetadata,
) -> Result<Client, SignInFailure> {
    let secret = secret(config).await?;
    let id = ClientId::new(config.client_id.clone());
    let client = CoreClient::from_provider_metadata(metadata, id, Some(secret));
    let back = RedirectUrl::new(format!("{console}{CALLBACK}"));
    let back = back.map_err(|error| {
        tracing::error!(%error, "`base_url` is no URL for the provider");
        SignInFailure::Internal
    })?;
    Ok(client.set_redirect_uri(back))
}

/// Reads the secret for each use, so that a new one needs no restart.
async fn secret(config: &OidcConfig) -> Result<ClientSecret, SignInFailure> {
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
    Ok(ClientSecret::new(text.to_owned()))
}

fn verifier(client: &Client) -> CoreIdTokenVerifier<'_> {
    client.id_token_verifier().set_allowed_algs(ALGORITHMS)
}

fn has_unknown_key(error: &ClaimsVerificationError) -> bool {
    matches!(
        error,
        ClaimsVerificationError::SignatureVerification(
            SignatureVerificationError::NoMatchingKey | SignatureVerificationError::CryptoError(_)
        )
    )
}

/// The identity of valid claims, if its address is verified and allowed.
fn proven(
    config: &OidcConfig,
    claims: &CoreIdTokenClaims,
) -> Result<ProvenIdentity, SignInFailure> {
    let email = claims
        .email()
        .filter(|_| claims.email_verified() == Some(true));
    let Some(email) = email else {
        tracing::info!("the provider has not verified the address of an account");
        return Err(SignInFailure::Unverified);
    };
    if !config.allows(email) {
        tracing::info!("an address is not on the allow-list of `oidc`");
        return Err(SignInFailure::NotAllowed);
    }
    Ok(ProvenIdentity {
        issuer: config.issuer.as_str().to_owned(),
        subject: claims.subject().to_string(),
        email: email.to_string(),
    })
}

fn invalid(error: &ClaimsVerificationError) -> SignInFailure {
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
