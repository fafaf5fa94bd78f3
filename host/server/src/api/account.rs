//! The account of a user of the console: `/auth/` and `GET /api/session/`.

use super::{Api, EndpointReply, EndpointRequest, EndpointResult, TIME, render};
use crate::schema::RequestSchema;
use serde::Serialize;
use serde_json::json;
use wharf_accounts::AnonymousSender;
use wharf_accounts::identity::IdentityInfo;
use wharf_accounts::passkey::RelyingParty;
use wharf_accounts::session::NewSession;
use wharf_config::OidcConfig;
use wharf_domain::error::Error;
use wharf_domain::secret::SecretText;
use wharf_domain::time::Timestamp;
use wharf_ground::caller::{Caller, Credential};

/// The ways to sign in.
pub fn options(api: &Api) -> EndpointResult {
    let config = api.app.config();
    let is_on = config.session.enabled;
    let passkey = is_on && RelyingParty::of(&config.base_url()).is_some();
    let provider = config.oidc.as_ref().filter(|_| is_on);
    let wire = json!({
        "password": is_on,
        "passkey": passkey,
        "provider": provider.map(OidcConfig::shown_name),
    });
    Ok(EndpointReply::Done(render(&wire, 128)?))
}

/// An address and a password that may be wrong.
pub struct Credentials {
    pub email: String,
    pub password: SecretText,
}

impl Credentials {
    /// Parses the body of `POST /auth/sign-in/`.
    pub fn parse(api: &Api, body: &[u8]) -> Result<Self, Error> {
        let [email, password] = texts(&api.schemas.sign_in, body, ["email", "password"])?;
        Ok(Self {
            email: email.unwrap_or_default(),
            password: SecretText::new(password.unwrap_or_default()),
        })
    }
}

/// Shows an invitation.
pub fn invite(api: &Api, body: &[u8]) -> EndpointResult {
    let [token] = texts(&api.schemas.invite, body, ["token"])?;
    let invite = api.accounts.invitation(&token.unwrap_or_default())?;
    let wire = json!({ "email": invite.email, "expires_at": invite.expires_at.to_rfc3339() });
    Ok(EndpointReply::Done(render(&wire, 128)?))
}

/// Accepts an invitation with a password.
pub async fn accept(
    api: &Api,
    visitor: &AnonymousSender,
    body: &[u8],
) -> Result<NewSession, Error> {
    let given = texts(&api.schemas.accept, body, ["token", "password"])?;
    let [token, password] = given.map(|text| SecretText::new(text.unwrap_or_default()));
    api.accounts
        .accept_with_password(visitor, token, password)
        .await
}

/// Issues a ticket for a WebSocket or an event stream of a page.
pub fn ticket(api: &Api, caller: &Caller, part: &str) -> EndpointResult {
    let ticket = api.accounts.issue_ticket(caller, SecretText::new(part))?;
    let wire = json!({ "ticket": ticket.expose() });
    Ok(EndpointReply::Secret(render(&wire, 128)?))
}

/// Changes the password of the caller.
pub async fn password(api: &Api, caller: &Caller, body: &[u8]) -> EndpointResult {
    let [current, new] = texts(&api.schemas.password, body, ["current", "new"])?;
    let (current, new) = (
        current.map(SecretText::new),
        SecretText::new(new.unwrap_or_default()),
    );
    api.accounts.change_password(caller, current, new).await?;
    Ok(EndpointReply::Gone)
}

/// Ends all sessions of the caller, and revokes keys if the body says so.
pub async fn sign_out_everywhere(
    api: &Api,
    caller: &Caller,
    body: Option<&[u8]>,
) -> Result<(), Error> {
    let mut since = None;
    if let Some(body) = body {
        let mut checked = api.schemas.sign_out_everywhere.check(body)?;
        since = checked.parse("revoke_keys_since", |text| {
            Timestamp::parse(text).ok_or_else(|| TIME.to_owned())
        });
        checked.errors.into_result()?;
    }
    api.accounts.sign_out_everywhere(caller, since).await
}

/// Reads text fields; a missing one is optional.
fn texts<const N: usize>(
    schema: &RequestSchema,
    body: &[u8],
    fields: [&str; N],
) -> Result<[Option<String>; N], Error> {
    let checked = schema.check(body)?;
    let texts = fields.map(|field| checked.text(field).map(str::to_owned));
    checked.errors.into_result()?;
    Ok(texts)
}

/// The session of a request, or its key.
#[derive(Serialize)]
struct AccountWire<'a> {
    email: &'a str,
    kind: &'static str,
    created_at: Option<String>,
    expires_at: Option<String>,
    has_password: bool,
    identities: Vec<IdentityWire>,
    login_user: &'a str,
    ssh_host: &'a str,
    installation: &'a str,
    version: &'static str,
}

/// An identity of the user at a provider.
#[derive(Serialize)]
struct IdentityWire {
    id: String,
    issuer: String,
    email: String,
    linked_at: String,
}

impl IdentityWire {
    fn new(identity: IdentityInfo) -> Self {
        Self {
            id: identity.id,
            issuer: identity.issuer,
            email: identity.email,
            linked_at: identity.linked_at.to_rfc3339(),
        }
    }
}

/// Shows the credential of the caller.
pub fn session(request: EndpointRequest) -> EndpointResult {
    let (api, caller, ()) = request.parts();
    let (kind, created_at, expires_at) = match caller.credential {
        Credential::Session => {
            let times = api.accounts.session(caller);
            let [created, expires] = [
                times.map(|times| times.created_at),
                times.map(|times| times.expires_at),
            ];
            ("session", created, expires)
        }
        Credential::Key => {
            let created = api.accounts.keys.created_at(&caller.key_id)?;
            ("key", created, caller.expires_at)
        }
    };
    let config = api.app.config();
    let identities = api.accounts.identities(caller)?.into_iter();
    let wire = AccountWire {
        email: &caller.email,
        kind,
        created_at: created_at.map(Timestamp::to_rfc3339),
        expires_at: expires_at.map(Timestamp::to_rfc3339),
        has_password: api.accounts.has_password(caller)?,
        identities: identities.map(IdentityWire::new).collect(),
        login_user: &config.login_user,
        ssh_host: &config.ssh_host,
        installation: api.app.installation(),
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(EndpointReply::Done(render(&wire, 384)?))
}
