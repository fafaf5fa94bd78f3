//! Secrets of webhooks, and signatures with them: Standard Webhooks 1.0.

use crate::random::fill;
use crate::vault::Vault;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;
use wharf_domain::secret::{Encrypted, SecretText};
use wharf_domain::time::Timestamp;
use wharf_domain::webhook::{Webhook, WebhookId};

/// Prefix of all secrets, by which secret scanners recognise one.
const PREFIX: &str = "whsec_";
/// Random bytes of a secret.
const BYTES: usize = 32;

/// A new secret.
pub fn generate() -> Result<SecretText, Error> {
    let mut bytes = [0; BYTES];
    fill(&mut bytes)?;
    Ok(SecretText::new(format!(
        "{PREFIX}{}",
        STANDARD.encode(bytes)
    )))
}

/// The signature of a message with a secret.
pub fn sign(secret: &SecretText, id: &str, seconds: i64, body: &[u8]) -> Result<String, Error> {
    let unusable = || Error::internal("the secret of a webhook cannot be used");
    let text = secret.expose().strip_prefix(PREFIX).ok_or_else(unusable)?;
    let key = STANDARD.decode(text).map_err(|_| unusable())?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|_| unusable())?;
    mac.update(format!("{id}.{seconds}.").as_bytes());
    mac.update(body);
    Ok(format!(
        "v1,{}",
        STANDARD.encode(mac.finalize().into_bytes())
    ))
}

/// The id that a ciphertext of a webhook is bound to. The vault binds to UUIDs.
fn bound(id: WebhookId) -> InstanceId {
    InstanceId(id.0)
}

impl Vault {
    /// Encrypts the secret of a webhook. A rotation reaches it only if the write that stores it calls
    /// this.
    pub fn encrypt_webhook(&self, id: WebhookId, secret: &SecretText) -> Result<Encrypted, Error> {
        self.encrypt_text(bound(id), secret)
    }

    /// Decrypts a secret of a webhook.
    pub fn decrypt_webhook(&self, id: WebhookId, secret: &Encrypted) -> Result<SecretText, Error> {
        self.decrypt_text(bound(id), secret)
    }

    /// Encrypts the secrets of a webhook again that an earlier key encrypted, and removes a secret that
    /// signs no more. Returns whether there was one. A secret that no key decrypts stays as it is.
    pub(crate) fn renew_webhook(&self, webhook: &mut Webhook, now: Timestamp) -> bool {
        let id = webhook.id;
        let ended = webhook.earlier.take_if(|(_, until)| *until <= now);
        let mut changed = ended.is_some();
        let earlier = webhook.earlier.as_mut().map(|(earlier, _)| earlier);
        for secret in std::iter::once(&mut webhook.secret).chain(earlier) {
            match self.renew(bound(id), secret) {
                Ok(Some(new)) => {
                    *secret = new;
                    changed = true;
                }
                Ok(None) => {}
                Err(error) => {
                    let error = error.chain();
                    tracing::error!(webhook = %id, %error, "a webhook keeps a secret that no key decrypts");
                }
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::{generate, sign};
    use wharf_domain::secret::SecretText;

    /// The example of the libraries of Standard Webhooks.
    #[test]
    fn a_known_signature() {
        let secret = SecretText::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", b"{\"test\": 2432232314}");
        let signature = sign(&secret, id, 1_614_265_330, body).unwrap();
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secrets_are_random_and_sign() {
        let (one, other) = (generate().unwrap(), generate().unwrap());
        assert_ne!(one.expose(), other.expose());
        let sign = |secret| sign(secret, "msg", 1, b"").unwrap();
        assert_ne!(sign(&one), sign(&other));
    }
}
