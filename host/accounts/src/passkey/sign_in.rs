//! Sign-in with a passkey.

use super::{PASSKEY_USERS, PASSKEYS, PasskeyRow};
use super::{RelyingParty, digest, handle, readable, refused};
use crate::session::NewSession;
use crate::{Accounts, AnonymousSender};
use serde_json::Value;
use webauthn_rp::bin::{Decode, Encode};
use webauthn_rp::request::auth::AuthenticationVerificationOptions;
use webauthn_rp::response::register::{DynamicState, StaticState};
use webauthn_rp::{
    AuthenticatedCredential, DiscoverableAuthentication16, DiscoverableCredentialRequestOptions,
};
use wharf_db::{Changes, Read as _, Rows as _};
use wharf_domain::error::Error;

/// The place of the user's handle in the result of a browser.
const USER_HANDLE: &str = "/response/userHandle";

/// The refusal of a passkey. Its reason is in the log only.
const REFUSED: &str = "cannot sign in here: it was removed, or its user is disabled";

impl Accounts {
    /// Begins the ceremony of a sign-in. Returns the options for the browser.
    pub fn begin_passkey_sign_in(
        &self,
        console: &RelyingParty,
        visitor: &AnonymousSender,
    ) -> Result<Value, Error> {
        let options = DiscoverableCredentialRequestOptions::passkey(&console.id);
        let failed = |error| Error::internal(format!("no passkey can be asked for: {error}"));
        let (state, options) = options.start_ceremony().map_err(failed)?;
        let options = serde_json::to_value(&options);
        let options = options.map_err(|e| Error::caused("no options of a sign-in", e))?;
        self.ceremonies.put_sign_in(state, visitor.network);
        Ok(options)
    }

    /// Signs the owner of a passkey in.
    pub async fn sign_in_with_passkey(
        &self,
        console: &RelyingParty,
        visitor: &AnonymousSender,
        credential: &Value,
    ) -> Result<NewSession, Error> {
        let unreadable = || refused("is not the result of a browser that used a passkey");
        // The library panics without a handle, although its documentation lets it fail.
        let handle_given = credential.pointer(USER_HANDLE).and_then(Value::as_str);
        if handle_given.is_none_or(str::is_empty) {
            return Err(unreadable());
        }
        let json = readable(credential).to_string();
        let answer = DiscoverableAuthentication16::from_json_relaxed(json.as_bytes());
        let answer = answer.map_err(|error| {
            tracing::debug!(%error, "the use of a passkey cannot be read");
            unreadable()
        })?;
        let challenge = answer.challenge_relaxed();
        let state = challenge.ok().and_then(|c| self.ceremonies.take_sign_in(c));
        let state = state.ok_or_else(|| {
            refused("answers a challenge that was used or has expired; try again")
        })?;
        let digest = digest(answer.raw_id().into_inner());
        let found = self.db.read(|rows| {
            let Some(user) = rows.get(&PASSKEY_USERS, digest)? else {
                return Ok(None);
            };
            let row = rows.get(&PASSKEYS, (user, digest))?;
            Ok(row.map(|row| (user, row, rows.installation())))
        })?;
        let Some((user, row, installation)) = found else {
            tracing::info!(peer = ?visitor.peer, "an unknown passkey was refused");
            return Err(refused(REFUSED));
        };
        let refuse = |reason: &dyn std::fmt::Display| {
            tracing::info!(user = user.0, peer = ?visitor.peer, %reason, "a passkey was refused");
            refused(REFUSED)
        };
        let handle = handle(installation?, user);
        let broken = |error: &dyn std::fmt::Display| {
            Error::internal(format!("the row of a passkey cannot be read: {error}"))
        };
        let fixed = StaticState::decode(row.fixed.as_slice()).map_err(|e| broken(&e))?;
        let dynamic = DynamicState::decode(row.state).map_err(|e| broken(&e))?;
        let known = AuthenticatedCredential::new(answer.raw_id(), &handle, fixed, dynamic);
        let mut known = known.map_err(|e| broken(&e))?;
        let origins = [console.origin.as_str()];
        let options = AuthenticationVerificationOptions::<&str, &str> {
            allowed_origins: &origins,
            error_on_unsolicited_extensions: false,
            ..AuthenticationVerificationOptions::default()
        };
        state
            .verify(&console.id, &answer, &mut known, &options)
            .map_err(|error| refuse(&error))?;
        let Ok(state) = known.dynamic_state().encode();
        let session = self.begin_session(visitor, user, "passkey", move |view, _| {
            // Another sign-in may have used the counter, or the passkey may be removed.
            if view.rows.get(&PASSKEYS, (user, digest))?.as_ref() != Some(&row) {
                return Err(Error::SignInRefused);
            }
            let used = PasskeyRow {
                state,
                last_used_at: Some(view.system),
                ..row.clone()
            };
            Ok(Changes::none().put(&PASSKEYS, (user, digest), used))
        });
        session.await.map_err(|error| match error {
            Error::SignInRefused => refuse(&"disabled, removed or in use"),
            other => other,
        })
    }
}
