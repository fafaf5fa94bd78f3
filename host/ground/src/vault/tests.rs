use super::super::keyring::{Keyring, SecretKey};
use super::{MARK, Vault};
use wharf_domain::ids::InstanceId;
use wharf_domain::secret::{Encrypted, InstanceSecrets, SecretKind, SecretText};

fn vault() -> (tempfile::TempDir, Vault) {
    let dir = tempfile::tempdir().unwrap();
    let keys = Keyring::of(SecretKey::generate().unwrap());
    let vault = Vault::new(dir.path().join("secret.key"), keys);
    (dir, vault)
}

#[test]
fn given_secrets_are_returned_with_the_password_once() {
    let (_dir, vault) = vault();
    let id = InstanceId(uuid::Uuid::from_u128(1));
    let pair = |kind, text: &str| (kind, SecretText::new(text));
    let key = pair(SecretKind::AiProviderApiKey, "a key");
    let password = pair(SecretKind::Password, "a password");
    let in_row = vault.encrypt_text(id, &password.1).unwrap();
    let opened = |given: &[_]| {
        let given = vault
            .encrypt_all(id, &InstanceSecrets(given.to_vec()))
            .unwrap();
        vault.decrypt_all(id, &given, &in_row).unwrap().0
    };
    assert_eq!(opened(&[]), std::slice::from_ref(&password));
    let both = [key.clone(), password];
    assert_eq!(opened(std::slice::from_ref(&key)), both);
    // Earlier versions encrypted the password with the others.
    assert_eq!(opened(&both), both);

    let other = InstanceId(uuid::Uuid::from_u128(2));
    let error = vault.decrypt_all(other, &Encrypted::default(), &in_row);
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("secret.key is probably not the key that encrypted it"),
        "{error}"
    );
}

#[test]
fn ciphertexts_are_read_with_the_key_that_they_name_and_without_a_name_with_every_key() {
    let (_dir, vault) = vault();
    let id = InstanceId(uuid::Uuid::from_u128(1));
    let text = SecretText::new("a password");
    let named = vault.encrypt_text(id, &text).unwrap();
    // Format 3 began with the nonce.
    let unnamed = Encrypted(named.0[MARK.len() + 8..].to_vec());
    vault.add_key().unwrap();
    for old in [&named, &unnamed] {
        assert_eq!(vault.decrypt_text(id, old).unwrap(), text);
        let renewed = vault.renew(id, old).unwrap().unwrap();
        assert_ne!(&renewed, old);
        assert_eq!(vault.renew(id, &renewed).unwrap(), None);
    }
    let renewed = vault.renew(id, &named).unwrap().unwrap();
    vault.drop_earlier_keys().unwrap();
    assert!(vault.decrypt_text(id, &named).is_err());
    assert_eq!(vault.decrypt_text(id, &renewed).unwrap(), text);
}
