//! Hashes of passwords: Argon2id, on a bounded number of threads.

use argon2::{Algorithm, Argon2, Params, Version};
use prometheus_client::metrics::counter::Counter;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use wharf_domain::error::Error;
use wharf_domain::secret::SecretText;
use wharf_ground::random::fill;

/// The parameters that OWASP recommends: 19 MiB and two passes.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// The most hashes that are computed at a time. Each takes a core and 19 MiB.
const RUNNING: usize = 2;
/// The most requests that wait for a hash. The last one waits for seconds.
const WAITING: usize = 64;

/// An Argon2id hash of a password, with its parameters.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordRow {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub passes: u32,
    /// Degree of parallelism.
    pub lanes: u32,
    pub salt: [u8; 16],
    pub hash: [u8; 32],
}

impl fmt::Debug for PasswordRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(password hash)")
    }
}

pub(super) struct Hashing {
    running: Arc<Semaphore>,
    waiting: Semaphore,
    hashes: Counter,
}

impl Hashing {
    pub(super) fn new() -> Self {
        Self {
            running: Arc::new(Semaphore::new(RUNNING)),
            waiting: Semaphore::new(WAITING),
            hashes: Counter::default(),
        }
    }

    /// The number of hashes since the start.
    pub(super) fn hashes(&self) -> Counter {
        self.hashes.clone()
    }

    /// Hashes a new password.
    pub(super) async fn hash(&self, password: SecretText) -> Result<PasswordRow, Error> {
        let mut row = PasswordRow {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
            salt: [0; 16],
            hash: [0; 32],
        };
        fill(&mut row.salt)?;
        let hashed = self.run(move || {
            row.hash = digest(&password, &row)?;
            Ok(row)
        });
        hashed.await
    }

    /// Returns whether a password is right. Without a password to compare with, the work is the same.
    pub(super) async fn verify(
        &self,
        password: SecretText,
        row: Option<PasswordRow>,
    ) -> Result<bool, Error> {
        let exists = row.is_some();
        let row = row.unwrap_or(PasswordRow {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            lanes: LANES,
            salt: [0; 16],
            hash: [0; 32],
        });
        let verified = self.run(move || {
            let hash = digest(&password, &row)?;
            Ok(bool::from(hash.ct_eq(&row.hash)) && exists)
        });
        verified.await
    }

    /// Runs the work on a thread of its own. The place is taken until the work ends, even if the
    /// caller goes away.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let place = self.waiting.try_acquire().map_err(|_| Error::Overloaded)?;
        let running = Arc::clone(&self.running).acquire_owned().await;
        let running = running.map_err(|e| Error::caused("no password can be hashed", e))?;
        let hashes = self.hashes.clone();
        let hashed = tokio::task::spawn_blocking(move || {
            let result = work();
            hashes.inc();
            drop(running);
            result
        });
        let result = hashed.await;
        drop(place);
        result.map_err(|e| Error::caused("hashing a password was aborted", e))?
    }
}

fn digest(password: &SecretText, row: &PasswordRow) -> Result<[u8; 32], Error> {
    let failed = |e: argon2::Error| Error::internal(format!("cannot hash a password: {e}"));
    let mut hash = [0; 32];
    let params = Params::new(row.memory_kib, row.passes, row.lanes, Some(hash.len()));
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params.map_err(failed)?)
        .hash_password_into(password.expose().as_bytes(), &row.salt, &mut hash)
        .map_err(failed)?;
    Ok(hash)
}
