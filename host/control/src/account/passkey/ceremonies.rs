//! The challenges that wait for their answers. They live for minutes, so they are in memory only.

use std::sync::{Mutex, MutexGuard, PoisonError};
use webauthn_rp::DiscoverableAuthenticationServerState;
use webauthn_rp::request::FixedCapHashSet;
use webauthn_rp::request::InsertResult;
use webauthn_rp::request::register::RegistrationServerState;
use webauthn_rp::response::SentChallenge;
use wharf_domain::error::Error;

/// The most challenges of each kind. Each takes less than 100 bytes.
const MOST: usize = 16_384;

pub(super) type Registering = RegistrationServerState<16>;
pub(super) type SigningIn = DiscoverableAuthenticationServerState;

pub(in super::super) struct Ceremonies {
    registrations: Mutex<FixedCapHashSet<Registering>>,
    sign_ins: Mutex<FixedCapHashSet<SigningIn>>,
}

impl Default for Ceremonies {
    fn default() -> Self {
        Self {
            registrations: Mutex::new(FixedCapHashSet::new(MOST)),
            sign_ins: Mutex::new(FixedCapHashSet::new(MOST)),
        }
    }
}

impl Ceremonies {
    pub(super) fn put_registration(&self, state: Registering) -> Result<(), Error> {
        kept(lock(&self.registrations).insert_or_replace_all_expired(state))
    }

    pub(super) fn put_sign_in(&self, state: SigningIn) -> Result<(), Error> {
        kept(lock(&self.sign_ins).insert_or_replace_all_expired(state))
    }

    /// Takes the registration with a challenge, which cannot be used again.
    pub(super) fn take_registration(&self, challenge: SentChallenge) -> Option<Registering> {
        lock(&self.registrations).take(&challenge)
    }

    /// Takes the sign-in with a challenge, which cannot be used again.
    pub(super) fn take_sign_in(&self, challenge: SentChallenge) -> Option<SigningIn> {
        lock(&self.sign_ins).take(&challenge)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kept(result: InsertResult) -> Result<(), Error> {
    match result {
        InsertResult::Success => Ok(()),
        InsertResult::CapacityFull | InsertResult::Duplicate => Err(Error::Overloaded),
    }
}
