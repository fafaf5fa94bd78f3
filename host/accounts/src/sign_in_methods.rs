//! The methods by which a user signs in: password, passkeys, identities.

use super::identity::identities;
use super::passkey::{RelyingParty, passkeys};
use super::password::PASSWORDS;
use wharf_config::Config;
use wharf_db::Rows;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;

/// Whether a user could not sign in without this passkey or identity. Passkeys of another host and
/// identities of another provider do not count.
pub(super) fn is_last(
    rows: &impl Rows,
    user: UserId,
    removed: [u8; 32],
    config: &Config,
) -> Result<bool, Error> {
    let console = RelyingParty::of(&config.base_url());
    let host = console.as_ref().map(RelyingParty::host);
    let issuer = config.oidc.as_ref().map(|oidc| oidc.issuer.as_str());
    let passkeys = passkeys(rows, user)?;
    let mut passkeys = passkeys.iter();
    let other_passkey =
        passkeys.any(|(digest, row)| *digest != removed && Some(row.host.as_str()) == host);
    let identities = identities(rows, user)?;
    let mut identities = identities.iter();
    let other_identity =
        identities.any(|(digest, row)| *digest != removed && Some(row.issuer.as_str()) == issuer);
    Ok(!other_passkey && !other_identity && rows.get(&PASSWORDS, user)?.is_none())
}

/// The methods of a user, in words for the operator.
pub fn described(rows: &impl Rows, user: UserId) -> Result<Vec<String>, Error> {
    let mut ways = Vec::new();
    if rows.get(&PASSWORDS, user)?.is_some() {
        ways.push("password".to_owned());
    }
    match passkeys(rows, user)?.len() {
        0 => {}
        1 => ways.push("1 passkey".to_owned()),
        n => ways.push(format!("{n} passkeys")),
    }
    let identities = identities(rows, user)?.into_iter();
    ways.extend(identities.map(|(_, row)| row.issuer));
    Ok(ways)
}
