//! The sign-ins that wait for their users to come back from the provider. They are in memory only, since
//! they live for minutes.

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use wharf_domain::secret::SecretText;
use wharf_ground::expiring::ExpiringMap;

/// The time that a user has at the provider.
pub const LIFETIME: Duration = Duration::from_mins(10);
/// The most sign-ins that wait. Each takes less than 1 KiB.
const MOST: usize = 4096;

pub(super) type Hashed = [u8; 32];

/// The values against which the answer of the provider is checked.
pub(super) struct ExpectedAnswer {
    pub(super) nonce: SecretText,
    pub(super) verifier: SecretText,
    browser: Hashed,
}

impl ExpectedAnswer {
    pub(super) fn new(nonce: SecretText, verifier: SecretText, browser: &str) -> Self {
        Self {
            nonce,
            verifier,
            browser: hashed(browser),
        }
    }
}

/// The sign-ins by the digest of their state.
pub(super) struct Pending(Mutex<ExpiringMap<Hashed, ExpectedAnswer>>);

impl Default for Pending {
    fn default() -> Self {
        Self(Mutex::new(ExpiringMap::new(MOST, LIFETIME)))
    }
}

impl Pending {
    /// Keeps a sign-in of a client in a network.
    pub(super) fn put(&self, state: &str, waiting: ExpectedAnswer, network: Option<IpAddr>) {
        self.0
            .lock()
            .put(hashed(state), waiting, network, Instant::now());
    }

    /// Takes the sign-in with this state, which cannot be used again; none if it is of another browser.
    pub(super) fn take(&self, state: &str, browser: Option<&str>) -> Option<ExpectedAnswer> {
        let waiting = self.0.lock().take(&hashed(state), Instant::now())?;
        // Digests are compared, so the time tells nothing about the secret.
        let own = browser.is_some_and(|browser| hashed(browser) == waiting.browser);
        own.then_some(waiting)
    }
}

pub(super) fn hashed(text: &str) -> Hashed {
    Sha256::digest(text.as_bytes()).into()
}
