//! The challenges that wait for their answers. They live for minutes, so they are in memory only.

use parking_lot::Mutex;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use webauthn_rp::DiscoverableAuthenticationServerState;
use webauthn_rp::request::TimedCeremony;
use webauthn_rp::request::register::RegistrationServerState;
use webauthn_rp::response::SentChallenge;
use wharf_ground::expiring::ExpiringMap;

/// The most challenges of each kind. Each takes less than 200 bytes.
const MOST: usize = 16_384;

/// The time for which a challenge is kept. The library gives its answer less time.
const LIFETIME: Duration = Duration::from_mins(10);

pub(super) type Registering = RegistrationServerState<16>;
pub(super) type SigningIn = DiscoverableAuthenticationServerState;

/// Challenges by their number.
type Challenges<T> = Mutex<ExpiringMap<u128, T>>;

pub(in super::super) struct Ceremonies {
    registrations: Challenges<Registering>,
    sign_ins: Challenges<SigningIn>,
}

impl Default for Ceremonies {
    fn default() -> Self {
        Self {
            registrations: Mutex::new(ExpiringMap::new(MOST, LIFETIME)),
            sign_ins: Mutex::new(ExpiringMap::new(MOST, LIFETIME)),
        }
    }
}

impl Ceremonies {
    pub(super) fn put_registration(&self, state: Registering, network: Option<IpAddr>) {
        put(&self.registrations, state, network);
    }

    pub(super) fn put_sign_in(&self, state: SigningIn, network: Option<IpAddr>) {
        put(&self.sign_ins, state, network);
    }

    /// Takes the registration with a challenge, which cannot be used again.
    pub(super) fn take_registration(&self, challenge: SentChallenge) -> Option<Registering> {
        self.registrations.lock().take(&challenge.0, Instant::now())
    }

    /// Takes the sign-in with a challenge, which cannot be used again.
    pub(super) fn take_sign_in(&self, challenge: SentChallenge) -> Option<SigningIn> {
        self.sign_ins.lock().take(&challenge.0, Instant::now())
    }
}

fn put<T: TimedCeremony>(challenges: &Challenges<T>, state: T, network: Option<IpAddr>) {
    let challenge = state.sent_challenge().0;
    challenges
        .lock()
        .put(challenge, state, network, Instant::now());
}
