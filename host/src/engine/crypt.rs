//! The SHA-512 crypt(3) form of a password, as `/etc/shadow` holds it.

use crate::domain::secret::{SecretKind, SecretText};
use sha_crypt::{Algorithm, Params, PasswordHasher, ShaCrypt};

/// Length of the salt before encoding, bytes: crypt(3) takes 16 characters of 6 bits.
const SALT: usize = 12;

/// The fewest rounds that crypt(3) allows. More would slow down guessing, but the password has 139
/// random bits, and a user waits for the hash.
fn rounds(kind: SecretKind) -> Option<Params> {
    match kind {
        SecretKind::Password => Params::new(Params::ROUNDS_MIN).ok(),
        _ => Some(Params::RECOMMENDED),
    }
}

/// Hashes with a random salt; `None` if the system has no random numbers.
pub fn crypt(kind: SecretKind, secret: &SecretText) -> Option<SecretText> {
    let mut salt = [0_u8; SALT];
    getrandom::fill(&mut salt).ok()?;
    ShaCrypt::new(Algorithm::Sha512Crypt, rounds(kind)?)
        .hash_password_with_salt(secret.expose().as_bytes(), &salt)
        .ok()
        .map(|hash| SecretText::new(hash.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha_crypt::PasswordVerifier;

    fn hash(kind: SecretKind) -> SecretText {
        crypt(kind, &SecretText::new("correct horse")).unwrap()
    }

    #[test]
    fn only_what_wharf_draws_itself_has_few_rounds() {
        assert!(
            hash(SecretKind::Password)
                .expose()
                .starts_with("$6$rounds=1000$")
        );
        let thought_of = hash(SecretKind::S3SecretAccessKey);
        assert!(thought_of.expose().starts_with("$6$rounds=5000$"));
    }

    #[test]
    fn a_hash_verifies_and_never_repeats() {
        let one = hash(SecretKind::Password);
        let two = hash(SecretKind::Password);
        assert_ne!(one.expose(), two.expose());
        ShaCrypt::SHA512
            .verify_password(b"correct horse", one.expose())
            .unwrap();
        assert!(
            ShaCrypt::SHA512
                .verify_password(b"wrong", one.expose())
                .is_err()
        );
    }
}
