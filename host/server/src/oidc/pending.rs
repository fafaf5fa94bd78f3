//! The sign-ins that wait for their users to come back from the provider. They are in memory only, since
//! they live for minutes.

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wharf_domain::secret::SecretText;

/// The time that a user has at the provider.
pub const LIFETIME: Duration = Duration::from_mins(10);
/// The most sign-ins that wait. Each takes less than 1 KiB.
const MOST: usize = 4096;

pub(super) type Hashed = [u8; 32];

/// The values against which the answer of the provider is checked.
pub(super) struct Waiting {
    pub(super) nonce: SecretText,
    pub(super) verifier: SecretText,
    browser: Hashed,
    ends: Instant,
}

impl Waiting {
    pub(super) fn new(nonce: SecretText, verifier: SecretText) -> Self {
        Self {
            nonce,
            verifier,
            browser: Hashed::default(),
            ends: Instant::now() + LIFETIME,
        }
    }
}

/// The sign-ins by the digest of their state.
#[derive(Default)]
pub(super) struct Pending(Mutex<HashMap<Hashed, Waiting>>);

impl Pending {
    /// Keeps a sign-in of the browser with this secret. False if there is no room.
    pub(super) fn put(&self, state: &str, browser: &str, mut waiting: Waiting) -> bool {
        waiting.browser = hashed(browser);
        let now = Instant::now();
        let mut all = self.all();
        if all.len() >= MOST {
            all.retain(|_, waiting| now < waiting.ends);
        }
        if all.len() >= MOST {
            return false;
        }
        all.insert(hashed(state), waiting);
        true
    }

    /// Takes the sign-in with this state, which cannot be used again; none if it is of another browser.
    pub(super) fn take(&self, state: &str, browser: Option<&str>) -> Option<Waiting> {
        let waiting = self.all().remove(&hashed(state))?;
        // Digests are compared, so the time tells nothing about the secret.
        let own = browser.is_some_and(|browser| hashed(browser) == waiting.browser);
        (own && Instant::now() < waiting.ends).then_some(waiting)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Hashed, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn hashed(text: &str) -> Hashed {
    Sha256::digest(text.as_bytes()).into()
}
