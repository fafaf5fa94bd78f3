//! Browsers that have signed in before: strangers cannot use up their attempts to sign in. A browser has
//! a proof, which depends on the password of its user. So a new password makes earlier proofs invalid.

use super::Accounts;
use super::hashing::PasswordRow;
use super::password::PASSWORDS;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use wharf_db::Rows as _;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::secret::SecretText;
use wharf_ground::users::user_of_email;

/// Separates the proof from other uses of its key.
const PURPOSE: &[u8] = b"known browser";

impl Accounts {
    /// Returns the proof for a browser that has signed in as a user; none without a password, which
    /// needs no such proof.
    pub fn browser_proof(&self, user: UserId) -> Result<Option<SecretText>, Error> {
        let row = self.db.read(|rows| rows.get(&PASSWORDS, user))?;
        let mac = row.and_then(|row| mac(user, &row));
        Ok(mac.map(|mac| {
            let mac = mac.finalize().into_bytes();
            SecretText::new(format!("{}.{}", user.0, URL_SAFE_NO_PAD.encode(mac)))
        }))
    }

    /// Returns the user of a browser with a proof.
    pub fn user_of_browser(&self, proof: &str) -> Option<UserId> {
        let (user, proven) = proof.split_once('.')?;
        let user = UserId(user.parse().ok()?);
        let row = self.db.read(|rows| rows.get(&PASSWORDS, user)).ok()??;
        let proven = URL_SAFE_NO_PAD.decode(proven).ok()?;
        let verified = mac(user, &row)?.verify_slice(&proven);
        verified.is_ok().then_some(user)
    }

    /// Whether a user signs in with an address.
    pub fn has_address(&self, user: UserId, email: &str) -> bool {
        let found = self.db.read(|rows| user_of_email(rows, email));
        found.is_ok_and(|found| found == Some(user))
    }
}

fn mac(user: UserId, row: &PasswordRow) -> Option<Hmac<Sha256>> {
    let key = [row.salt.as_slice(), &row.hash].concat();
    let mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    Some(mac.chain_update(PURPOSE).chain_update(user.0.to_be_bytes()))
}
