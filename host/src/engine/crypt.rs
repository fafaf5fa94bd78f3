//! The SHA-512 crypt(3) form of a password, as `/etc/shadow` holds it.

use crate::domain::secret::SecretText;
use sha_crypt::{PasswordHasher, ShaCrypt};

/// Salt, bytes before encoding; crypt(3) takes 16 characters, 6 bits each.
const SALT: usize = 12;

/// Hashes with a fresh random salt. None when the system has no randomness.
pub fn crypt(secret: &SecretText) -> Option<SecretText> {
    let mut salt = [0_u8; SALT];
    getrandom::fill(&mut salt).ok()?;
    ShaCrypt::SHA512
        .hash_password_with_salt(secret.expose().as_bytes(), &salt)
        .ok()
        .map(|hash| SecretText::new(hash.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha_crypt::PasswordVerifier;

    #[test]
    fn a_hash_verifies_and_never_repeats() {
        let password = SecretText::new("correct horse");
        let one = crypt(&password).unwrap();
        let two = crypt(&password).unwrap();
        assert!(one.expose().starts_with("$6$"));
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
