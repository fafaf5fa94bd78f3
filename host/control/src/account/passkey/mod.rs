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

use sha2::{Digest, Sha256};
use std::convert::Infallible;
use uuid::Uuid;
use webauthn_rp::bin::Decode;
use webauthn_rp::request::register::UserHandle16;
use wharf_db::PasskeyDigest;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::UserId;

/// The field of a request with the result of a browser's ceremony.
const CREDENTIAL: &str = "credential";

/// The refusal of a browser's result.
fn refused(message: &str) -> Error {
    FieldErrors::one(CREDENTIAL, message).into()
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
