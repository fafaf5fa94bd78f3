//! SSH host keys of instances, as the host was shown them.

use serde::{Deserialize, Serialize};

/// A public host key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostKey {
    /// The algorithm, such as `ssh-ed25519`.
    pub algorithm: String,
    /// The fingerprint as OpenSSH shows it, such as `SHA256:…`.
    pub fingerprint: String,
    /// The key as in OpenSSH's `known_hosts`, such as `ssh-ed25519 AAAA…`.
    pub public_key: String,
}
