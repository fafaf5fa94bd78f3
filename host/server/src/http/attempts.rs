//! The rates of attempts to sign in. A stranger with the address of a user must not use up the attempts
//! of that user, so each bucket has a holder that strangers are not.

use super::client::{RequestClient, client};
use super::extract::NoBody;
use super::interface::Interface;
use super::rate::{RateExceeded, RateLimits};
use super::respond::HttpError;
use super::session_cookie::Cookies;
use super::sign_in::Visit;
use axum::extract::{FromRequest, Request};
use sha2::{Digest, Sha256};
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZero;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use wharf_domain::email::canonical;
use wharf_domain::ids::UserId;
use wharf_ground::caller::Caller;

/// The most proofs of one request. A page on another port of the host can add some.
const MOST_PROOFS: usize = 4;

/// The digest of an account's address, which may be long, or of the label of a page, which is no address.
type Account = [u8; 32];

/// The rates of attempts.
pub(super) struct Attempts {
    networks: RateLimits<IpAddr>,
    local_network: RateLimits<IpAddr>,
    accounts_in_networks: RateLimits<(Account, Option<IpAddr>)>,
    accounts: RateLimits<Account>,
    known_browsers: RateLimits<UserId>,
    sessions: RateLimits<Arc<str>>,
}

impl Attempts {
    /// A person needs a few attempts. A peer on this machine may be a proxy of all users. An account
    /// recovers slowly, so that guessing a password takes forever, even from many networks.
    pub(super) fn new() -> Self {
        Self {
            networks: rates("address", 3_000, 20),
            local_network: rates("address", 100, 200),
            accounts_in_networks: rates("account", 30_000, 10),
            accounts: rates("account", 10_000, 100),
            known_browsers: rates("browser", 30_000, 10),
            sessions: rates("session", 30_000, 10),
        }
    }

    /// Takes an attempt of a network.
    fn take_network(&self, network: Option<IpAddr>) -> Result<(), RateExceeded> {
        match network {
            Some(network) if network.is_loopback() => self.local_network.take(&network),
            Some(network) => self.networks.take(&network),
            None => Ok(()),
        }
    }

    /// Takes an attempt on an account, whether it exists or not. An attempt beyond the rate of its network
    /// takes none from other networks.
    fn take_account(&self, email: &str, network: Option<IpAddr>) -> Result<(), RateExceeded> {
        let address = canonical(email).unwrap_or_else(|_| email.to_owned());
        self.take_digest(Sha256::digest(address.as_bytes()).into(), network)
    }

    /// Takes an attempt on the password of the page with a label, whether it exists or not.
    pub(super) fn take_page(&self, label: &str, network: IpAddr) -> Result<(), RateExceeded> {
        self.take_network(Some(network))?;
        self.take_digest(Sha256::digest(label.as_bytes()).into(), Some(network))
    }

    fn take_digest(&self, account: Account, network: Option<IpAddr>) -> Result<(), RateExceeded> {
        let taken = self.accounts_in_networks.take(&(account, network));
        taken.and_then(|()| self.accounts.take(&account))
    }

    /// Takes an attempt of a session.
    pub(super) fn take_session(&self, caller: &Caller) -> Result<(), HttpError> {
        let taken = self.sessions.take(&caller.key_id);
        taken.map_err(HttpError::TooManyRequests)
    }
}

fn rates<K: Clone + Eq + Hash>(what: &'static str, millis: u64, burst: u32) -> RateLimits<K> {
    let burst = NonZero::new(burst).unwrap_or(NonZero::<u32>::MIN);
    RateLimits::every(what, Duration::from_millis(millis), burst)
}

/// A request of anyone under `/auth/`. It has taken an attempt before its body is read.
pub(super) struct SignInAttempt<B = NoBody> {
    visit: Visit<B>,
    /// The user who has signed in with this browser before, if the attempt is the browser's.
    known: Option<UserId>,
}

impl<B> SignInAttempt<B> {
    /// Takes an attempt on an account, unless the browser is known to its user.
    pub(super) fn take_account(&self, interface: &Interface, email: &str) -> Result<(), HttpError> {
        let accounts = interface.api.accounts();
        let is_own = self
            .known
            .is_some_and(|user| accounts.has_address(user, email));
        if is_own {
            return Ok(());
        }
        let taken = interface.attempts.take_account(email, self.visitor.network);
        taken.map_err(HttpError::TooManyRequests)
    }
}

impl<B> Deref for SignInAttempt<B> {
    type Target = Visit<B>;

    fn deref(&self) -> &Visit<B> {
        &self.visit
    }
}

impl<B> FromRequest<Arc<Interface>> for SignInAttempt<B>
where
    B: FromRequest<Arc<Interface>, Rejection = HttpError>,
{
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &Arc<Interface>) -> Result<Self, HttpError> {
        let attempts = &state.attempts;
        let known = known_user(&request, state);
        let known = known.filter(|user| attempts.known_browsers.take(user).is_ok());
        if known.is_none() {
            let network = client(request.extensions()).map(RequestClient::network);
            let taken = attempts.take_network(network);
            taken.map_err(HttpError::TooManyRequests)?;
        }
        let visit = Visit::from_request(request, state).await?;
        Ok(Self { visit, known })
    }
}

/// The user who has signed in with the browser of a request before.
fn known_user(request: &Request, interface: &Interface) -> Option<UserId> {
    let app = interface.api.app();
    let cookies = Cookies::of(app, &app.config());
    let mut proofs = cookies.browsers(request.headers()).take(MOST_PROOFS);
    proofs.find_map(|proof| interface.api.accounts().user_of_browser(proof))
}

#[cfg(test)]
mod tests {
    use super::Attempts;
    use std::net::IpAddr;

    #[test]
    fn an_account_is_closed_to_a_network_before_it_is_closed_to_all() {
        let attempts = Attempts::new();
        let network = |n: u8| Some(IpAddr::from([192, 0, 2, n]));
        let take = |n: u8| attempts.take_account("ann@example.com", network(n));
        for n in 0..10 {
            assert!((0..10).all(|_| take(n).is_ok()));
            // Attempts beyond the rate of the network take none from others.
            for _ in 0..100 {
                assert_eq!(take(n).unwrap_err().burst, 10);
            }
        }
        assert_eq!(take(10).unwrap_err().burst, 100);
        assert!(attempts.take_account("bob@example.com", network(0)).is_ok());
    }
}
