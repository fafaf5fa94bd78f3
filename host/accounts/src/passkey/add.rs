//! New passkeys: of an invited user, and of a user who is signed in.

use super::manage::Passkey;
use super::{PASSKEY_USERS, PASSKEYS, PasskeyDigest, PasskeyRow, passkeys};
use super::{RelyingParty, digest, handle, readable, refused};
use crate::invite::INVITES;
use crate::recent_sign_in::require_access;
use crate::session::NewSession;
use crate::session::end_others;
use crate::{Accounts, AnonymousSender, invite};
use serde_json::{Value, json};
use webauthn_rp::bin::{Decode, Encode};
use webauthn_rp::request::PublicKeyCredentialDescriptor;
use webauthn_rp::request::register::{CredProtect, RegistrationVerificationOptions};
use webauthn_rp::response::{AuthTransports, CredentialId};
use webauthn_rp::{PublicKeyCredentialCreationOptions, Registration};
use wharf_db::{Changes, Read as _, Rows as _, View};
use wharf_domain::error::{Error, FieldErrors, NON_FIELD_ERRORS};
use wharf_domain::ids::UserId;
use wharf_domain::secret::SecretText;
use wharf_domain::time::Timestamp;
use wharf_ground::audit;
use wharf_ground::caller::Caller;
use wharf_ground::users::USERS;

/// The most passkeys of one user.
const MAX_PASSKEYS: usize = 20;

/// The name of a passkey whose owner gave none.
const NAME: &str = "Passkey";

/// The name of the console in the dialogs of authenticators.
const CONSOLE: &str = "Wharf";

type NewPasskey = (PasskeyDigest, PasskeyRow);

impl Accounts {
    /// Begins the ceremony that makes a passkey of an invited user. Returns the options for the
    /// browser.
    pub fn begin_invited_passkey(
        &self,
        console: &RelyingParty,
        visitor: &AnonymousSender,
        token: &str,
    ) -> Result<Value, Error> {
        let user = self.invitation(token)?.user;
        self.begin(console, user, visitor)
    }

    /// Begins the ceremony that makes a passkey of the caller. Returns the options for the browser.
    pub fn begin_passkey(
        &self,
        console: &RelyingParty,
        visitor: &AnonymousSender,
        caller: &Caller,
    ) -> Result<Value, Error> {
        self.require_recent_sign_in(caller)?;
        self.begin(console, caller.user, visitor)
    }

    fn begin(
        &self,
        console: &RelyingParty,
        user: UserId,
        visitor: &AnonymousSender,
    ) -> Result<Value, Error> {
        let (email, installation, known) = self.db.read(|rows| {
            let email = rows.get(&USERS, user)?.unwrap_or_default();
            Ok((email, rows.installation()?, passkeys(rows, user)?))
        })?;
        let handle = handle(installation, user);
        let mut options = PublicKeyCredentialCreationOptions::first_passkey_with_blank_user_info(
            &console.id,
            &handle,
        );
        // Browsers would refuse authenticators without this extension. Sign-ins verify the user anyway.
        options.extensions.cred_protect = CredProtect::None;
        for (_, row) in known {
            if row.host == console.host()
                && let Ok(id) = CredentialId::decode(row.credential)
                && let Ok(transports) = AuthTransports::decode(row.transports)
            {
                let known = PublicKeyCredentialDescriptor { id, transports };
                options.exclude_credentials.push(known);
            }
        }
        let failed = |error| Error::internal(format!("no passkey can be made: {error}"));
        let (state, options) = options.start_ceremony().map_err(failed)?;
        let options = serde_json::to_value(&options);
        let mut options = options.map_err(|e| Error::caused("no options of a passkey", e))?;
        // The library's own names would refuse some addresses.
        for (place, name) in [
            ("/rp/name", CONSOLE),
            ("/user/name", email.as_str()),
            ("/user/displayName", email.as_str()),
        ] {
            if let Some(value) = options.pointer_mut(place) {
                *value = json!(name);
            }
        }
        self.ceremonies.put_registration(state, visitor.network);
        Ok(options)
    }

    /// Accepts an invitation with a passkey, and signs in. The earlier sessions of the user end.
    pub async fn accept_with_passkey(
        &self,
        console: &RelyingParty,
        visitor: &AnonymousSender,
        token: SecretText,
        credential: &Value,
    ) -> Result<NewSession, Error> {
        let user = self.invitation(token.expose())?.user;
        let new = self.made(console, user, credential)?;
        self.forget(user, |_| true);
        let accepted = self.begin_session(visitor, user, "invitation", move |view, origin| {
            invite::valid(view.rows, user, token.expose(), view.system)?;
            let (_, changes) = added(view, user, NAME, &new)?;
            let subject = Passkey::id_of(new.0);
            let result = "by invitation";
            let audited = audit::record(view, origin, "passkey.add", Some(user), &subject, result);
            let ended = end_others(view, user, None)?;
            Ok(ended.remove(&INVITES, user).with(changes).with(audited))
        });
        accepted.await
    }

    /// Adds a passkey of the caller.
    pub async fn add_passkey(
        &self,
        console: &RelyingParty,
        caller: &Caller,
        name: Option<String>,
        credential: &Value,
    ) -> Result<Passkey, Error> {
        self.require_recent_sign_in(caller)?;
        let (user, origin) = (caller.user, caller.origin());
        let new = self.made(console, user, credential)?;
        let name = name.unwrap_or_else(|| NAME.to_owned());
        let (host, by) = (console.host().to_owned(), caller.clone());
        let added = self.db.write(move |view| {
            require_access(view, &by)?;
            let (row, change) = added(view, user, &name, &new)?;
            let subject = Passkey::id_of(new.0);
            let audited =
                audit::record(view, &origin, "passkey.add", Some(user), &subject, "added");
            let passkey = Passkey::new((new.0, row), &host);
            Ok((passkey, change.with(audited)))
        });
        added.await
    }

    /// Verifies the result of a ceremony that made a passkey of a user.
    fn made(
        &self,
        console: &RelyingParty,
        user: UserId,
        credential: &Value,
    ) -> Result<NewPasskey, Error> {
        let json = readable(credential).to_string();
        let made = Registration::from_json_relaxed(json.as_bytes()).map_err(|error| {
            tracing::debug!(%error, "a passkey cannot be read");
            refused("is not the result of a browser that made a passkey")
        })?;
        let challenge = made.challenge_relaxed();
        let state = challenge
            .ok()
            .and_then(|c| self.ceremonies.take_registration(c));
        let state = state.ok_or_else(|| {
            refused("answers a challenge that was used or has expired; begin again")
        })?;
        let origins = [console.origin.as_str()];
        let options = RegistrationVerificationOptions::<&str, &str> {
            allowed_origins: &origins,
            error_on_unsolicited_extensions: false,
            ..RegistrationVerificationOptions::default()
        };
        let verified = state
            .verify(&console.id, &made, &options)
            .map_err(|error| {
                tracing::info!(user = user.0, %error, "a passkey was refused");
                refused("is not a valid passkey of this console; begin again")
            })?;
        let installation = self.db.read(|rows| rows.installation())?;
        if *verified.user_id() != handle(installation, user) {
            return Err(refused("was begun by another user; begin again"));
        }
        let credential: &[u8] = verified.id().into_inner();
        let Ok(transports) = verified.transports().encode();
        let Ok(fixed) = verified.static_state().encode();
        let Ok(state) = verified.dynamic_state().encode();
        let row = PasskeyRow {
            name: String::new(),
            credential: credential.to_owned(),
            host: console.host().to_owned(),
            transports,
            fixed,
            state,
            created_at: Timestamp(0),
            last_used_at: None,
        };
        Ok((digest(credential), row))
    }
}

/// The row of a new passkey, and the change that adds it.
fn added(
    view: &View<'_>,
    user: UserId,
    name: &str,
    (digest, row): &NewPasskey,
) -> Result<(PasskeyRow, Changes), Error> {
    if view.rows.get(&PASSKEY_USERS, *digest)?.is_some() {
        return Err(refused("is added already"));
    }
    if passkeys(view.rows, user)?.len() >= MAX_PASSKEYS {
        let message = format!("a user has at most {MAX_PASSKEYS} passkeys; remove one first");
        return Err(FieldErrors::one(NON_FIELD_ERRORS, message).into());
    }
    let row = PasskeyRow {
        name: name.to_owned(),
        created_at: view.system,
        ..row.clone()
    };
    let put = Changes::none().put(&PASSKEYS, (user, *digest), row.clone());
    Ok((row, put))
}
