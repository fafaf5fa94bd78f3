//! API keys for programs on other machines, as in RFC 8628: the program shows a code, and its user
//! approves it in the console. Requests are in memory only, since they live for minutes.

use super::Accounts;
use crate::recent_sign_in::Expiry;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::scope::Scopes;
use wharf_domain::secret::SecretText;
use wharf_ground::caller::Caller;
use wharf_ground::expiring::ExpiringMap;
use wharf_ground::random::{fill, random_text};

/// The time in which a request can be approved and its key fetched.
pub const LIFETIME: Duration = Duration::from_mins(10);
/// The time between two questions of a program.
pub const INTERVAL: Duration = Duration::from_secs(2);
/// The least time between two questions, which allows for a network that delays the first one.
const LEAST_INTERVAL: Duration = Duration::from_secs(1);
/// The most requests at a time. Each takes less than 1 KiB.
const MAX_REQUESTS: usize = 1000;
/// The letters of codes: RFC 8628 recommends consonants, which form no words and are hard to confuse.
const ALPHABET: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

type DeviceDigest = [u8; 32];

/// The requests by the digest of their device code.
pub(super) struct Devices(Mutex<ExpiringMap<DeviceDigest, DeviceRequest>>);

impl Default for Devices {
    fn default() -> Self {
        Self(Mutex::new(ExpiringMap::new(MAX_REQUESTS, LIFETIME)))
    }
}

struct DeviceRequest {
    user_code: String,
    name: String,
    asked: Option<Instant>,
    state: DeviceState,
}

enum DeviceState {
    Pending,
    /// The key is being made.
    Deciding,
    Denied,
    Approved(SecretText, String),
}

/// A new request.
#[derive(Debug)]
pub struct NewDevice {
    /// The secret of the program.
    pub device_code: SecretText,
    /// The code that the user compares and approves.
    pub user_code: String,
}

/// The answer to a program that asks for its key.
#[derive(Debug)]
pub enum DeviceAnswer {
    Pending,
    /// The program asks too often.
    SlowDown,
    /// There is no such request any more.
    Expired,
    Denied,
    /// The key and the address of its user. It is handed out once.
    Granted(SecretText, String),
}

impl Devices {
    fn begin(
        &self,
        name: String,
        network: Option<IpAddr>,
        now: Instant,
    ) -> Result<NewDevice, Error> {
        let device_code = SecretText::new(random_text::<32>()?);
        let user_code = random_code()?;
        let mut requests = self.0.lock();
        if requests
            .iter_mut(now)
            .any(|(_, other)| other.user_code == user_code)
        {
            return Err(Error::Overloaded);
        }
        let request = DeviceRequest {
            user_code: user_code.clone(),
            name,
            asked: None,
            state: DeviceState::Pending,
        };
        requests.put(digest(device_code.expose()), request, network, now);
        Ok(NewDevice {
            device_code,
            user_code,
        })
    }

    fn ask(&self, device_code: &str, now: Instant) -> DeviceAnswer {
        let digest = digest(device_code);
        let mut requests = self.0.lock();
        let Some(request) = requests.get_mut(&digest, now) else {
            return DeviceAnswer::Expired;
        };
        let asked = request.asked.replace(now);
        let early = asked.is_some_and(|asked| now.duration_since(asked) < LEAST_INTERVAL);
        match &request.state {
            _ if early => return DeviceAnswer::SlowDown,
            DeviceState::Pending | DeviceState::Deciding => return DeviceAnswer::Pending,
            DeviceState::Denied | DeviceState::Approved(..) => {}
        }
        match requests.take(&digest, now).map(|request| request.state) {
            Some(DeviceState::Approved(key, email)) => DeviceAnswer::Granted(key, email),
            _ => DeviceAnswer::Denied,
        }
    }

    /// Moves the request with a code from `Pending` to another state, and returns its name.
    fn decide(
        &self,
        code: &str,
        state: DeviceState,
        now: Instant,
    ) -> Result<(DeviceDigest, String), Error> {
        let letters = code.chars().filter(|c| !matches!(c, '-' | ' '));
        let letters: String = letters.map(|c| c.to_ascii_uppercase()).collect();
        let mut requests = self.0.lock();
        let found = requests.iter_mut(now).find(|(_, request)| {
            matches!(request.state, DeviceState::Pending)
                && request.user_code.replace('-', "") == letters
        });
        let (digest, request) = found.ok_or_else(|| {
            let message = "no program waits with this code: it is mistyped, used or has expired";
            FieldErrors::one("user_code", message)
        })?;
        request.state = state;
        Ok((*digest, request.name.clone()))
    }

    fn set(&self, digest: &DeviceDigest, state: DeviceState) {
        if let Some(request) = self.0.lock().get_mut(digest, Instant::now()) {
            request.state = state;
        }
    }
}

impl Accounts {
    /// Begins a request for a key with this name, of a client in a network.
    pub fn begin_device(&self, name: String, network: Option<IpAddr>) -> Result<NewDevice, Error> {
        self.devices.begin(name, network, Instant::now())
    }

    /// Answers a program that asks for its key.
    pub fn ask_device(&self, device_code: &str) -> DeviceAnswer {
        self.devices.ask(device_code, Instant::now())
    }

    /// Refuses the request with this code.
    pub fn deny_device(&self, user_code: &str) -> Result<(), Error> {
        let denied = self
            .devices
            .decide(user_code, DeviceState::Denied, Instant::now());
        denied.map(drop)
    }

    /// Makes a key of the caller for the request with this code.
    ///
    /// The work goes on if the caller goes away: no other task has the text of the new key.
    pub async fn approve_device(
        self: &Arc<Self>,
        caller: &Caller,
        user_code: &str,
        scopes: Scopes,
        expiry: Expiry,
    ) -> Result<(), Error> {
        self.require_recent(caller)?;
        let now = Instant::now();
        let (digest, name) = self.devices.decide(user_code, DeviceState::Deciding, now)?;
        let (accounts, caller) = (Arc::clone(self), caller.clone());
        let task = tokio::spawn(async move {
            let made = accounts.make_key(&caller, name, Some(scopes), expiry).await;
            let (state, result) = match made {
                Ok((made, new)) => (DeviceState::Approved(made.key, new.email), Ok(())),
                Err(error) => (DeviceState::Pending, Err(error)),
            };
            accounts.devices.set(&digest, state);
            result
        });
        let aborted = |error| Error::caused("the approval was aborted", error);
        task.await.map_err(aborted)?
    }
}

fn digest(device_code: &str) -> DeviceDigest {
    Sha256::digest(device_code.as_bytes()).into()
}

/// A code such as `BCDF-GHJK`, of 34 bits.
fn random_code() -> Result<String, Error> {
    let mut code = String::with_capacity(9);
    while code.len() < 9 {
        let mut byte = [0];
        fill(&mut byte)?;
        // Letters are equally frequent below the largest multiple of their number.
        let letter = ALPHABET.get(usize::from(byte[0]) % ALPHABET.len());
        if let Some(letter) = letter.filter(|_| byte[0] < 240) {
            code.push(char::from(*letter));
            if code.len() == 4 {
                code.push('-');
            }
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::{ALPHABET, DeviceAnswer, DeviceState, Devices, LIFETIME, MAX_REQUESTS};
    use std::time::{Duration, Instant};

    #[test]
    fn requests_are_bounded_and_expire() {
        let (devices, start) = (Devices::default(), Instant::now());
        let begin = |network: u8, at| {
            let network = Some([192, 0, 2, network].into());
            devices.begin(String::new(), network, at).unwrap()
        };
        let first = begin(1, start);
        let oldest = begin(2, start);
        let soon = start + Duration::from_millis(1);
        for _ in 2..=MAX_REQUESTS {
            begin(2, soon);
        }
        // The network with most requests has made room.
        let left = devices.0.lock().iter_mut(soon).count();
        assert_eq!(left, MAX_REQUESTS);
        let gone = devices.ask(oldest.device_code.expose(), soon);
        assert!(matches!(gone, DeviceAnswer::Expired));
        let ask = |at| devices.ask(first.device_code.expose(), at);
        assert!(matches!(ask(start), DeviceAnswer::Pending));
        let soon = start + Duration::from_millis(500);
        assert!(matches!(ask(soon), DeviceAnswer::SlowDown));
        let end = start + LIFETIME + Duration::from_millis(1);
        assert!(matches!(ask(end), DeviceAnswer::Expired));
        assert!(
            devices
                .decide(&first.user_code, DeviceState::Denied, end)
                .is_err()
        );
        begin(3, end);
        assert_eq!(devices.0.lock().iter_mut(end).count(), 1);
    }

    #[test]
    fn a_code_is_typed_in_any_case_and_decided_once() {
        let (devices, now) = (Devices::default(), Instant::now());
        let one = devices.begin(String::new(), None, now).unwrap();
        let (left, right) = one.user_code.split_once('-').unwrap();
        assert!([left, right].iter().all(|half| half.len() == 4));
        assert!(
            one.user_code
                .bytes()
                .all(|b| b == b'-' || ALPHABET.contains(&b))
        );
        let typed = format!(" {left} {} ", right.to_lowercase());
        assert!(devices.decide(&typed, DeviceState::Denied, now).is_ok());
        assert!(devices.decide(&typed, DeviceState::Denied, now).is_err());
        let ask = || devices.ask(one.device_code.expose(), now);
        assert!(matches!(ask(), DeviceAnswer::Denied));
        assert!(matches!(ask(), DeviceAnswer::Expired));
    }
}
