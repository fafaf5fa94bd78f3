//! The permits of all tunnels of the service.

use super::{Opener, OverLimit, TerminalEnd};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;
use wharf_domain::ids::UserId;

/// All open tunnels.
#[derive(Default)]
pub struct Tunnels(Mutex<All>);

#[derive(Default)]
struct All {
    open: HashMap<u64, Open>,
    opened: u64,
    stopped: bool,
}

struct Open {
    opener: Opener,
    end: watch::Sender<Option<TerminalEnd>>,
}

/// The permit of a tunnel. It is given back when it is dropped.
pub struct TunnelPermit {
    tunnels: Arc<Tunnels>,
    number: u64,
    end: watch::Receiver<Option<TerminalEnd>>,
}

impl Tunnels {
    /// Checks that a further tunnel of a user has a permit.
    pub fn check(&self, user: UserId, limit: usize) -> Result<(), OverLimit> {
        self.0.lock().check(user, limit)
    }

    /// Takes a permit for a tunnel.
    pub fn admit(
        self: &Arc<Self>,
        opener: Opener,
        limit: usize,
    ) -> Result<TunnelPermit, OverLimit> {
        let mut all = self.0.lock();
        all.check(opener.user, limit)?;
        all.opened += 1;
        let (number, (end, ended)) = (all.opened, watch::channel(None));
        all.open.insert(number, Open { opener, end });
        Ok(TunnelPermit {
            tunnels: Arc::clone(self),
            number,
            end: ended,
        })
    }

    /// Ends the tunnels for which `end` has a reason.
    pub fn sweep(&self, mut end: impl FnMut(&Opener) -> Option<TerminalEnd>) {
        let all = self.0.lock();
        let openers = all.open.iter().map(|(n, open)| (*n, open.opener.clone()));
        let openers: Vec<_> = openers.collect();
        drop(all);
        for (number, opener) in openers {
            if let Some(end) = end(&opener)
                && let Some(open) = self.0.lock().open.get(&number)
            {
                open.end.send_replace(Some(end));
            }
        }
    }

    /// Whether there are no tunnels.
    pub fn is_empty(&self) -> bool {
        self.0.lock().open.is_empty()
    }

    /// Ends all tunnels and admits no further ones.
    pub fn stop(&self) {
        let mut all = self.0.lock();
        all.stopped = true;
        for open in all.open.values() {
            open.end.send_replace(Some(TerminalEnd::Shutdown));
        }
    }
}

impl All {
    fn check(&self, user: UserId, limit: usize) -> Result<(), OverLimit> {
        let of_user = self.open.values().filter(|open| open.opener.user == user);
        if of_user.count() >= limit {
            Err(OverLimit::User(limit))
        } else if self.stopped {
            Err(OverLimit::Service)
        } else {
            Ok(())
        }
    }
}

impl TunnelPermit {
    /// Waits until the tunnel must end.
    pub async fn ended(&mut self) -> TerminalEnd {
        let ended = self.end.wait_for(Option::is_some).await;
        ended
            .ok()
            .and_then(|end| *end)
            .unwrap_or(TerminalEnd::Closed)
    }
}

impl Drop for TunnelPermit {
    fn drop(&mut self) {
        self.tunnels.0.lock().open.remove(&self.number);
    }
}

impl fmt::Debug for TunnelPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelPermit")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Tunnels;
    use crate::{Opener, OverLimit, TerminalEnd};
    use std::sync::Arc;
    use wharf_domain::audit::Actor;
    use wharf_domain::ids::{InstanceId, UserId};

    fn opener(key: &str) -> Opener {
        Opener {
            user: UserId(1),
            actor: Actor::Key(key.to_owned()),
            instance: InstanceId::parse("019aa8a5-4c1e-7b52-9d0f-6f0c6a0e9b17").unwrap(),
        }
    }

    #[tokio::test]
    async fn tunnels_have_places_and_end_with_their_key() {
        let tunnels = Arc::<Tunnels>::default();
        let mut first = tunnels.admit(opener("a"), 2).unwrap();
        let second = tunnels.admit(opener("b"), 2).unwrap();
        let full = tunnels.admit(opener("a"), 2).unwrap_err();
        assert_eq!(full, OverLimit::User(2));
        let is_first = |opener: &Opener| opener.actor == Actor::Key("a".to_owned());
        tunnels.sweep(|opener| is_first(opener).then_some(TerminalEnd::Access));
        assert_eq!(first.ended().await, TerminalEnd::Access);
        drop((first, second));
        assert!(tunnels.is_empty());
        let mut last = tunnels.admit(opener("a"), 2).unwrap();
        tunnels.stop();
        assert_eq!(last.ended().await, TerminalEnd::Shutdown);
        assert_eq!(
            tunnels.admit(opener("a"), 2).unwrap_err(),
            OverLimit::Service
        );
    }
}
