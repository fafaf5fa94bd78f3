//! Passkeys: sign-in with a key that never leaves its authenticator, as in Web Authentication.

mod add;
mod ceremonies;
mod manage;
mod relying_party;
mod sign_in;

pub(super) use ceremonies::Ceremonies;
pub use manage::Passkey;
pub(super) use manage::first;
pub use relying_party::RelyingParty;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::convert::Infallible;
use uuid::Uuid;
use webauthn_rp::bin::Decode;
use webauthn_rp::request::register::UserHandle16;
use wharf_db::{Rows, Table, tables};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::UserId;
use wharf_domain::time::Timestamp;
use wharf_ground::users::USERS;

tables! {
    /// Passkeys of a user by the digest of their credential id.
    pub const PASSKEYS: Table<UserId, PasskeyDigest, PasskeyRow> =
        Table::bounded(b'P', 0, "20 of a user", "Until the user removes it").of(&USERS)
            .indexed(|user, digest, _, entries| entries.put(&PASSKEY_USERS, *digest, user));
    /// Digest of a credential id → user.
    pub const PASSKEY_USERS: Table<(), PasskeyDigest, UserId> =
        Table::index_of(&PASSKEYS, b'P', 1);
}

/// SHA-256 of a credential id.
pub type PasskeyDigest = [u8; 32];

/// A passkey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasskeyRow {
    /// The name that its owner gave it.
    pub name: String,
    /// The id that its authenticator chose.
    pub credential: Vec<u8>,
    /// The host of the console for which it was made. Browsers offer it there only.
    pub host: String,
    /// The ways in which browsers reach the authenticator, as bits.
    pub transports: u8,
    /// The public key and the settings that never change.
    pub fixed: Vec<u8>,
    /// The counter of signatures and the other state that a sign-in changes.
    pub state: [u8; 7],
    pub created_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
}

/// The passkeys of a user.
pub(super) fn passkeys(
    rows: &impl Rows,
    user: UserId,
) -> Result<Vec<(PasskeyDigest, PasskeyRow)>, Error> {
    rows.under(&PASSKEYS, &user)?.collect()
}

/// The field of a request with the result of a browser's ceremony.
const CREDENTIAL: &str = "credential";

/// The refusal of a browser's result.
fn refused(message: &str) -> Error {
    FieldErrors::one(CREDENTIAL, message).into()
}

/// The kinds of connection that the standard has today.
const TRANSPORTS: [&str; 6] = ["ble", "hybrid", "internal", "nfc", "smart-card", "usb"];
const ATTACHMENTS: [&str; 2] = ["platform", "cross-platform"];

/// The credential as the library reads it. The standard asks servers to accept values that they do not
/// know, and browsers and extensions send some.
fn readable(credential: &Value) -> Value {
    let mut credential = credential.clone();
    let is_known =
        |known: &[&str], value: &Value| value.as_str().is_some_and(|v| known.contains(&v));
    if let Some(response) = credential
        .get_mut("response")
        .and_then(Value::as_object_mut)
    {
        let transports = response.remove("transports").unwrap_or_default();
        let transports = transports.as_array().into_iter().flatten();
        let known = transports.filter(|transport| is_known(&TRANSPORTS, transport));
        response.insert("transports".to_owned(), known.cloned().collect());
    }
    if let Some(credential) = credential.as_object_mut() {
        let attachment = "authenticatorAttachment";
        credential.retain(|name, value| name != attachment || is_known(&ATTACHMENTS, value));
        let results = "clientExtensionResults";
        if !credential.get(results).is_some_and(Value::is_object) {
            credential.insert(results.to_owned(), json!({}));
        }
    }
    credential
}

fn digest(credential: &[u8]) -> PasskeyDigest {
    Sha256::digest(credential).into()
}

/// The id of a user towards authenticators, which says nothing about the user.
fn handle(installation: Uuid, user: UserId) -> UserHandle16 {
    let digest = Sha256::new()
        .chain_update(b"user handle")
        .chain_update(installation)
        .chain_update(user.0.to_be_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes
        .iter_mut()
        .zip(digest)
        .for_each(|(byte, from)| *byte = from);
    let decoded: Result<_, Infallible> = UserHandle16::decode(bytes);
    match decoded {
        Ok(handle) => handle,
        Err(never) => match never {},
    }
}
