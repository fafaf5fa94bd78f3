//! Reload of the configuration file while the server runs.

use super::{Config, ConfigError, PagesConfig};
use toml::{Table, Value};

/// Settings that a reload changes, with all settings below them.
const LIVE: &[&str] = &[
    "buckets",
    "login_user",
    "oidc",
    "package_mirrors",
    "pages.acme",
    "pages.cert",
    "pages.key",
    "plugins.require_proof",
    "provisioning_deadline_s",
    "quota",
    "rates",
    "registry",
    "retention",
    "session.absolute_days",
    "session.idle_hours",
    "tls.cert",
    "tls.key",
    "trust_ca",
    "webhook",
    "limits.answer_wait_ms",
    "limits.probe_every_ms",
    "limits.stats_every_ms",
    "limits.stats_timeout_ms",
    "limits.stop_grace_ms",
    "limits.terminal_unattended_s",
    "limits.terminals",
    "limits.terminals_per_user",
    "limits.tunnels_per_user",
    "limits.vm_stop_grace_ms",
];

impl Config {
    /// Reads the file again. Returns the configuration and the settings that differ, or refuses it if a
    /// setting differs that a running server cannot change.
    pub fn reload(&self) -> Result<(Self, Vec<String>), ConfigError> {
        let new = Self::load(&self.path)?;
        let mut changed = Vec::new();
        compare("", &self.source, &new.source, &mut changed);
        let is_live = |setting: &str| {
            LIVE.iter().any(|live| {
                let rest = setting.strip_prefix(live);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        let mut fixed: Vec<String> = changed.iter().filter(|s| !is_live(s)).cloned().collect();
        // The files of TLS may change, its presence may not.
        if self.tls.is_some() != new.tls.is_some() {
            fixed.push("tls".to_owned());
        }
        let has_cert = |config: &Self| config.pages.as_ref().map(PagesConfig::is_tls);
        if has_cert(self) != has_cert(&new) {
            fixed.push("pages".to_owned());
        }
        if fixed.is_empty() {
            Ok((new, changed))
        } else {
            Err(ConfigError::Fixed(fixed))
        }
    }
}

/// Collects the dotted keys of the values that differ.
fn compare(prefix: &str, old: &Table, new: &Table, changed: &mut Vec<String>) {
    let empty = Table::new();
    let added = new.keys().filter(|key| !old.contains_key(*key));
    for key in old.keys().chain(added) {
        let setting = match prefix {
            "" => key.clone(),
            _ => format!("{prefix}.{key}"),
        };
        match (old.get(key), new.get(key)) {
            (Some(Value::Table(old)), Some(Value::Table(new))) => {
                compare(&setting, old, new, changed);
            }
            (Some(Value::Table(old)), None) => compare(&setting, old, &empty, changed),
            (None, Some(Value::Table(new))) => compare(&setting, &empty, new, changed),
            (old, new) if old != new => changed.push(setting),
            _ => {}
        }
    }
}
