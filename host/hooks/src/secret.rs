//! Secrets of webhooks, and signatures with them: Standard Webhooks 1.0.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;
use wharf_domain::secret::{Encrypted, SecretText};
use wharf_domain::time::Timestamp;
use wharf_domain::webhook::{Webhook, WebhookId};
use wharf_ground::random::Random;
use wharf_ground::vault::Vault;

/// Prefix of all secrets, by which secret scanners recognise one.
const PREFIX: &str = "whsec_";
/// Random bytes of a secret.
const BYTES: usize = 32;

/// A new secret.
pub fn generate(random: &Random) -> Result<SecretText, Error> {
    let mut bytes = [0; BYTES];
    random.fill(&mut bytes)?;
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

/// Encrypts the secret of a webhook. A rotation reaches it only if the write that stores it calls this.
pub fn encrypt(vault: &Vault, id: WebhookId, secret: &SecretText) -> Result<Encrypted, Error> {
    vault.encrypt_text(bound(id), secret)
}

/// Decrypts a secret of a webhook.
pub fn decrypt(vault: &Vault, id: WebhookId, secret: &Encrypted) -> Result<SecretText, Error> {
    vault.decrypt_text(bound(id), secret)
}

/// Encrypts the secrets of a webhook again that an earlier key encrypted, and removes a secret that signs no
/// more. Returns whether there was one. A secret that no key decrypts stays as it is.
pub fn renew(vault: &Vault, webhook: &mut Webhook, now: Timestamp) -> bool {
    let id = webhook.id;
    let ended = webhook.earlier.take_if(|earlier| earlier.until <= now);
    let mut changed = ended.is_some();
    let earlier = webhook.earlier.as_mut().map(|earlier| &mut earlier.secret);
    for secret in std::iter::once(&mut webhook.secret).chain(earlier) {
        match vault.renew(bound(id), secret) {
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

#[cfg(test)]
mod tests {
    use super::{decrypt, encrypt, generate, renew, sign};
    use std::collections::BTreeMap;
    use uuid::Uuid;
    use wharf_db::{CommitTimes, Db, DbBounds, DbSchema};
    use wharf_domain::ids::UserId;
    use wharf_domain::placement::{Inventory, Pools};
    use wharf_domain::secret::{Encrypted, SecretText};
    use wharf_domain::time::Timestamp;
    use wharf_domain::webhook::{EarlierSecret, Webhook, WebhookId};
    use wharf_ground::random::Random;
    use wharf_ground::vault::Vault;
    use wharf_instances::SharedInventory;

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
        let random = Random::kernel();
        let [one, other] = [&random; 2].map(|random| generate(random).unwrap());
        assert_ne!(one.expose(), other.expose());
        let sign = |secret| sign(secret, "msg", 1, b"").unwrap();
        assert_ne!(sign(&one), sign(&other));
    }

    static NO_TABLES: DbSchema = DbSchema {
        tables: &[],
        steps: &[],
    };

    #[tokio::test]
    async fn a_webhook_keeps_its_secret_in_a_rotation_beside_one_that_no_key_decrypts() {
        let dir = tempfile::tempdir().unwrap();
        let (ssh, web) = ((1, 2), (3, 4));
        let inventory = SharedInventory::new(Inventory::new(Vec::new(), Pools { ssh, web }));
        let clock = Box::new(|| CommitTimes::agreed(Timestamp(3)));
        let (path, bounds) = (dir.path(), DbBounds::default());
        let db = Db::open(path, &NO_TABLES, Box::new(inventory), clock, bounds).unwrap();
        let vault = Vault::open(path, &db).await.unwrap();
        let (id, text) = (WebhookId(Uuid::from_u128(1)), SecretText::new("whsec_a"));
        let (now, later) = (Timestamp(1_000), Timestamp(2_000));
        let lost = EarlierSecret {
            secret: Encrypted(vec![7; 60]),
            until: later,
        };
        let mut webhook = Webhook {
            id,
            owner: UserId(1),
            url: String::new(),
            types: Vec::new(),
            secret: encrypt(&vault, id, &text).unwrap(),
            earlier: Some(lost.clone()),
            created_at: now,
            after: 0,
            deliveries: 0,
            pending: BTreeMap::new(),
            failing_since: None,
            disabled_at: None,
        };
        vault.add_key().unwrap();
        assert!(renew(&vault, &mut webhook, now));
        assert_eq!(webhook.earlier, Some(lost));
        vault.drop_earlier_keys().unwrap();
        assert_eq!(decrypt(&vault, id, &webhook.secret).unwrap(), text);
        // A secret that signs no more is removed.
        assert!(renew(&vault, &mut webhook, later));
        assert_eq!(webhook.earlier, None);
        assert!(!renew(&vault, &mut webhook, later));
    }
}
