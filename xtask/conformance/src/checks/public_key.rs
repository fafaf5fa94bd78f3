//! `public_key`: one OpenSSH public key, parsed.

use crate::check::{Check, decision, spec};
use serde_json::json;

const ED25519: &str = "ssh-ed25519 \
    AAAAC3NzaC1lZDI1NTE5AAAAIFIkGWuBbBTx9nTEHwsrBJV4jF7lFQyMDmE6pDnoO4Yg";
const BLOB: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIFIkGWuBbBTx9nTEHwsrBJV4jF7lFQyMDmE6pDnoO4Yg";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for (description, key) in [
        ("without a comment", ED25519.to_owned()),
        ("with a comment", format!("{ED25519} me@laptop")),
        ("with a trailing line break", format!("{ED25519} me\n")),
    ] {
        let name = format!("`public_key` {description} is accepted");
        let rule = move |c: &crate::context::Context<'_>| {
            let created = c.create(&c.small_with("container", &json!({ "public_key": key })))?;
            anyhow::ensure!(
                created.get("public_key").is_none(),
                "the response has `public_key`"
            );
            Ok(())
        };
        checks.push(match description {
            "with a trailing line break" => decision("4.3", name, rule),
            _ => spec("4.3", name, rule),
        });
    }
    for (description, key) in [
        ("that is empty", String::new()),
        ("that is a word", "hello".to_owned()),
        ("with a mismatched key type", format!("ssh-rsa {BLOB} me")),
        (
            "that is truncated",
            format!("ssh-ed25519 {}", BLOB.get(..40).unwrap_or("")),
        ),
        ("with trailing bytes", format!("ssh-ed25519 {BLOB}AAAA")),
        ("with options", format!("no-pty {ED25519}")),
        ("with a command", format!("command=\"id\" {ED25519}")),
        ("of two lines", format!("{ED25519}\n{ED25519}")),
        ("with a leading comment line", format!("# mine\n{ED25519}")),
        (
            "that is a private key",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----"
                .to_owned(),
        ),
        (
            "of an unknown type",
            "ssh-dss AAAAB3NzaC1kc3M= me".to_owned(),
        ),
        ("with a NUL byte", format!("{ED25519} me\0")),
    ] {
        let name = format!("`public_key` {description} is refused");
        checks.push(decision("4.3", name, move |c| {
            let body = c.small_with("container", &json!({ "public_key": key }));
            c.try_create(c.me(), &body)?.refuses("public_key")
        }));
    }
    checks
}
