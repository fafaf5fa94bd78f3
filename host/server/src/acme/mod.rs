//! The certificate of the pages from an authority with the protocol ACME: ordered in the background, kept in
//! the data directory, and renewed in time.
//!
//! The listener of the pages follows the file of the certificate, and so needs no notice of a new one.

mod authority;
mod files;
mod hook;
mod order;
mod renewal;

pub use files::{AcmeState, PresentCertificate, certificate_file, in_words};

use files::AcmeFiles;
use prometheus_client::metrics::gauge::Gauge;
use std::cmp::min;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, watch};
use wharf_config::{AcmeConfig, Config, Domain};
use wharf_domain::error::chain;
use wharf_ground::random;
use wharf_instances::App;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
/// The longest time between two looks at the certificate.
const LOOK_EVERY: u64 = HOUR;
/// The pause after the first failure. Each further one makes it four times as long.
const FIRST_PAUSE: u64 = MINUTE;
/// The longest pause after a failure, and the shortest time from one certificate to the next.
const LONGEST_PAUSE: u64 = 12 * HOUR;
/// The time for which the advice of the authority counts.
const ADVICE_LASTS: Duration = Duration::from_secs(6 * HOUR);

/// The task that orders certificates.
pub struct Acme {
    app: Arc<App>,
    failures: Gauge,
    /// Notified by a reload, after which the task does not wait.
    reloaded: Arc<Notify>,
    advice: Option<Advice>,
}

/// The authority's advice about the time to renew a certificate.
struct Advice {
    not_after: u64,
    /// `None` if the authority gives no advice.
    renew_at: Option<u64>,
    asked: Instant,
}

impl Acme {
    pub fn new(app: Arc<App>, failures: Gauge, reloaded: Arc<Notify>) -> Self {
        Self {
            app,
            failures,
            reloaded,
            advice: None,
        }
    }

    /// Keeps the certificate valid until `stopped` turns true.
    pub async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut is_asked = false;
        loop {
            let look = async {
                let pause = self.look(is_asked).await;
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs(pause)) => false,
                    () = self.reloaded.notified() => true,
                }
            };
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => return,
                asked = look => is_asked = asked,
            }
        }
    }

    /// Orders a certificate if one is due. Returns the seconds until the next look.
    async fn look(&mut self, is_asked: bool) -> u64 {
        let config = self.app.config();
        let Some((acme, domain)) = section(&config) else {
            return LOOK_EVERY;
        };
        let files = AcmeFiles::new(&config);
        let mut state = files.state(&acme.directory, domain);
        let present = present(&config);
        let now = now();
        let due = match &present {
            None => 0,
            Some(present) => {
                let advised = self.advised(acme, &files, present).await;
                present.renew_at(advised)
            }
        };
        // A server that was killed after it had kept the certificate has left the state of the attempt.
        if due > now && state.is_open() {
            order::clean_up(acme, &files, &mut state).await;
            state = AcmeState::settled(&acme.directory, domain, now);
            keep(&files, &state);
        }
        self.failures.set(state.failures.into());
        // A time beyond the longest pause is from a clock that was wrong.
        let pause = state.not_before.saturating_sub(now);
        let may_wait = !is_asked && pause <= LONGEST_PAUSE + LONGEST_PAUSE / 4;
        let wait = match due.saturating_sub(now) {
            0 if may_wait => pause,
            wait => wait,
        };
        if wait > 0 {
            tracing::debug!(wait, "no certificate is due");
            return min(wait, LOOK_EVERY);
        }
        // The pause is written before the attempt, so that a server that is killed in it does not begin anew
        // at each start.
        state.failures = state.failures.saturating_add(1);
        state.not_before = now + pause_after(state.failures);
        state.error = Some("the last attempt was cut off".to_owned());
        let attempt = async {
            files.write(&state)?;
            order::attempt(acme, domain, &files, &mut state, present.as_ref()).await
        };
        match attempt.await {
            Ok(new) => {
                let valid = in_words(new.not_after.saturating_sub(now));
                tracing::info!(%domain, valid, "the authority has issued a certificate for the pages");
                state = AcmeState::settled(&acme.directory, domain, now);
            }
            Err(error) => {
                let error = chain(&error);
                let next = in_words(state.not_before.saturating_sub(now));
                let failures = state.failures;
                tracing::warn!(%domain, failures, next, "the pages get no new certificate: {error}");
                state.error = Some(error);
            }
        }
        self.failures.set(state.failures.into());
        keep(&files, &state);
        min(state.not_before.saturating_sub(now), LOOK_EVERY)
    }

    /// The time at which the authority wants the certificate to be renewed.
    async fn advised(
        &mut self,
        acme: &AcmeConfig,
        files: &AcmeFiles,
        present: &PresentCertificate,
    ) -> Option<u64> {
        let is_current = |advice: &&Advice| {
            advice.not_after == present.not_after && advice.asked.elapsed() < ADVICE_LASTS
        };
        if let Some(advice) = self.advice.as_ref().filter(is_current) {
            return advice.renew_at;
        }
        let renew_at = match renewal::window(acme, files, present).await {
            Ok(Some((from, to))) => {
                tracing::debug!(from, to, "the authority says when to renew the certificate");
                Some(from.saturating_add(random_below(to.saturating_sub(from))))
            }
            Ok(None) => None,
            Err(error) => {
                let error = chain(&error);
                tracing::debug!(
                    "the authority does not say when to renew the certificate: {error}"
                );
                None
            }
        };
        self.advice = Some(Advice {
            not_after: present.not_after,
            renew_at,
            asked: Instant::now(),
        });
        renew_at
    }
}

impl AcmeState {
    /// The state after a certificate.
    fn settled(directory: &str, domain: &Domain, now: u64) -> Self {
        Self {
            directory: directory.to_owned(),
            domain: domain.to_string(),
            not_before: now + LONGEST_PAUSE,
            ..Self::default()
        }
    }

    /// Whether an attempt has left something that only its success takes away.
    fn is_open(&self) -> bool {
        self.failures > 0 || self.error.is_some() || self.order.is_some() || self.record.is_some()
    }
}

/// Writes the state. The server goes on without it.
fn keep(files: &AcmeFiles, state: &AcmeState) {
    if let Err(error) = files.write(state) {
        let error = chain(&error);
        tracing::warn!("the state of the certificate is not kept: {error}");
    }
}

/// The settings of the authority, and the domain.
pub fn section(config: &Config) -> Option<(&AcmeConfig, &Domain)> {
    let pages = config.pages.as_ref()?;
    Some((pages.acme.as_ref()?, &pages.domain))
}

/// The certificate, if it is from the authority of the settings and for the domain.
pub fn present(config: &Config) -> Option<PresentCertificate> {
    let (acme, domain) = section(config)?;
    let present = PresentCertificate::read(&certificate_file(config), &acme.directory);
    present.filter(|present| present.is_for(domain))
}

/// Returns the state after the last attempt with the authority and the domain of the settings.
pub fn state(config: &Config) -> Option<AcmeState> {
    let (acme, domain) = section(config)?;
    Some(AcmeFiles::new(config).state(&acme.directory, domain))
}

/// The seconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

/// The seconds after this number of failures.
fn pause_after(failures: u32) -> u64 {
    let factor = 4_u64.saturating_pow(failures.saturating_sub(1));
    let pause = FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE);
    // Servers that failed together do not come back together.
    pause + random_below(pause / 4)
}

/// A random number below another; 0 if there is none.
fn random_below(end: u64) -> u64 {
    let mut bytes = [0; 8];
    let filled = random::fill(&mut bytes);
    let number = u64::from_ne_bytes(bytes);
    filled
        .ok()
        .and_then(|()| number.checked_rem(end))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{FIRST_PAUSE, LONGEST_PAUSE, pause_after};

    #[test]
    fn pauses_grow_to_a_limit() {
        for (failures, least) in [
            (1, FIRST_PAUSE),
            (2, 4 * FIRST_PAUSE),
            (3, 16 * FIRST_PAUSE),
            (6, LONGEST_PAUSE),
            (u32::MAX, LONGEST_PAUSE),
        ] {
            let pause = pause_after(failures);
            assert!((least..=least + least / 4).contains(&pause), "{failures}");
        }
    }
}
