//! All terminals of the service.

use super::session::{Receivers, Session};
use super::{SshTarget, TerminalAttachment, TerminalEnd, TerminalSize};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;
use wharf_domain::audit::Actor;
use wharf_domain::ids::{InstanceId, UserId};

/// All terminals of the service.
#[derive(Debug, Default)]
pub struct Terminals(Mutex<OpenTerminals>);

#[derive(Debug, Default)]
struct OpenTerminals {
    sessions: HashMap<String, Arc<Session>>,
    stopped: bool,
}

/// The party that opens a terminal. Only it attaches to the terminal again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opener {
    pub user: UserId,
    /// The key or the session.
    pub actor: Actor,
    pub instance: InstanceId,
}

/// The most terminals.
#[derive(Debug, Clone, Copy)]
pub struct TerminalBounds {
    pub of_one_user: usize,
    pub in_all: usize,
}

/// No further terminal is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverLimit {
    /// The user has this number of terminals.
    User(usize),
    /// The limit of the service is reached, or it stops.
    Service,
}

/// A terminal that has a place and has not begun. It gives the place back when it is dropped.
#[derive(Debug)]
pub struct AdmittedTerminal {
    terminals: Arc<Terminals>,
    session: Arc<Session>,
    receivers: Option<Receivers>,
}

impl Terminals {
    /// Checks that a further terminal of a user has a place.
    pub fn check(&self, user: UserId, bounds: TerminalBounds) -> Result<(), OverLimit> {
        self.0.lock().check(user, bounds)
    }

    /// Takes a place for a terminal.
    pub fn admit(
        self: &Arc<Self>,
        id: String,
        opener: Opener,
        size: TerminalSize,
        bounds: TerminalBounds,
    ) -> Result<AdmittedTerminal, OverLimit> {
        let mut all = self.0.lock();
        all.check(opener.user, bounds)?;
        let (session, receivers) = Session::new(id.clone(), opener, size);
        all.sessions.insert(id, Arc::clone(&session));
        Ok(AdmittedTerminal {
            terminals: Arc::clone(self),
            session,
            receivers: Some(receivers),
        })
    }

    /// Returns whether the opener has the terminal.
    pub fn has(&self, id: &str, opener: &Opener) -> bool {
        self.0.lock().of(id, opener).is_some()
    }

    /// Attaches to a terminal of the opener, in place of the client that is attached.
    pub fn attach(
        self: &Arc<Self>,
        id: &str,
        opener: &Opener,
        size: TerminalSize,
    ) -> Option<TerminalAttachment> {
        let session = self.0.lock().of(id, opener)?;
        session.size.send_replace(size);
        Some(TerminalAttachment::new(Arc::clone(self), session))
    }

    /// Ends the terminals without a client for `unattended`, and those for which `end` has a reason.
    pub fn sweep(&self, unattended: Duration, mut end: impl FnMut(&Opener) -> Option<TerminalEnd>) {
        let sessions: Vec<_> = self.0.lock().sessions.values().cloned().collect();
        for session in sessions {
            let is_left = |time: Duration| time >= unattended;
            if session.output.unattended().is_some_and(is_left) {
                session.end(TerminalEnd::Unattended);
                self.remove_unattended(&session);
            } else if !session.output.has_ended()
                && let Some(end) = end(&session.opener)
            {
                session.end(end);
            }
        }
    }

    /// Returns whether there are no terminals.
    pub fn is_empty(&self) -> bool {
        self.0.lock().sessions.is_empty()
    }

    /// Ends all terminals and admits no further ones.
    pub fn stop(&self) {
        let mut all = self.0.lock();
        all.stopped = true;
        for (_, session) in all.sessions.drain() {
            session.end(TerminalEnd::Shutdown);
        }
    }

    /// Removes a terminal that has ended, unless a client is attached that has to learn of it.
    pub(super) fn remove_unattended(&self, session: &Session) {
        let mut all = self.0.lock();
        if session.output.unattended().is_some() {
            all.sessions.remove(&session.id);
        }
    }
}

impl OpenTerminals {
    fn check(&self, user: UserId, bounds: TerminalBounds) -> Result<(), OverLimit> {
        let of_user = self.sessions.values().filter(|s| s.opener.user == user);
        if of_user.count() >= bounds.of_one_user {
            Err(OverLimit::User(bounds.of_one_user))
        } else if self.stopped || self.sessions.len() >= bounds.in_all {
            Err(OverLimit::Service)
        } else {
            Ok(())
        }
    }

    fn of(&self, id: &str, opener: &Opener) -> Option<Arc<Session>> {
        let session = self.sessions.get(id)?;
        (session.opener == *opener).then(|| Arc::clone(session))
    }
}

impl AdmittedTerminal {
    /// Begins the terminal, and attaches its first client.
    pub fn begin(mut self, target: SshTarget) -> TerminalAttachment {
        let attachment =
            TerminalAttachment::new(Arc::clone(&self.terminals), Arc::clone(&self.session));
        if let Some(receivers) = self.receivers.take() {
            let session = Arc::clone(&self.session);
            let run = async move { session.run(target, receivers).await };
            tokio::spawn(run.in_current_span());
        }
        attachment
    }
}

impl Drop for AdmittedTerminal {
    fn drop(&mut self) {
        if self.receivers.is_some() {
            self.terminals.0.lock().sessions.remove(&self.session.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Opener, OverLimit, TerminalBounds, Terminals};
    use crate::{AttachmentEvent, SshTarget, TerminalEnd, TerminalSize};
    use russh::keys::PrivateKey;
    use russh::keys::ssh_key::private::{Ed25519Keypair, KeypairData};
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use wharf_domain::audit::Actor;
    use wharf_domain::ids::{InstanceId, UserId};
    use wharf_domain::secret::SecretText;

    const SIZE: TerminalSize = TerminalSize { cols: 80, rows: 24 };
    const BOUNDS: TerminalBounds = TerminalBounds {
        of_one_user: 2,
        in_all: 3,
    };

    fn opener(user: u32, key: &str) -> Opener {
        Opener {
            user: UserId(user.into()),
            actor: Actor::Key(key.to_owned()),
            instance: InstanceId::parse("019aa8a5-4c1e-7b52-9d0f-6f0c6a0e9b17").unwrap(),
        }
    }

    /// A server that accepts and is silent.
    async fn silent() -> (tokio::net::TcpListener, SshTarget) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = SshTarget {
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr().unwrap().port(),
            user: "user".to_owned(),
            password: SecretText::new("secret"),
            is_known: Box::new(|_| Box::pin(async { true })),
        };
        (listener, target)
    }

    #[tokio::test]
    async fn places_are_bounded_and_given_back() {
        let terminals = Arc::<Terminals>::default();
        let admit =
            |id: &str, user| terminals.admit(id.to_owned(), opener(user, "k"), SIZE, BOUNDS);
        let first = admit("a", 1).unwrap();
        let _second = admit("b", 1).unwrap();
        assert_eq!(admit("c", 1).unwrap_err(), OverLimit::User(2));
        let _third = admit("d", 2).unwrap();
        assert_eq!(admit("e", 3).unwrap_err(), OverLimit::Service);
        drop(first);
        let (_listener, target) = silent().await;
        let attachment = admit("e", 3).unwrap().begin(target);
        attachment.end();
        assert_eq!(
            attachment.next().await,
            AttachmentEvent::End(TerminalEnd::Closed)
        );
        assert!(terminals.has("e", &opener(3, "k")));
        drop(attachment);
        assert!(!terminals.has("e", &opener(3, "k")));
        terminals.stop();
        assert_eq!(admit("f", 3).unwrap_err(), OverLimit::Service);
    }

    #[tokio::test]
    async fn only_the_opener_attaches_again_and_nobody_after_the_end() {
        let terminals = Arc::<Terminals>::default();
        let (_listener, target) = silent().await;
        let own = opener(1, "k");
        let first = terminals.admit("a".to_owned(), own.clone(), SIZE, BOUNDS);
        let first = first.unwrap().begin(target);
        assert!(terminals.attach("a", &opener(1, "other"), SIZE).is_none());
        assert!(terminals.attach("a", &opener(2, "k"), SIZE).is_none());
        let second = terminals.attach("a", &own, SIZE).unwrap();
        assert_eq!(first.next().await, AttachmentEvent::Replaced);
        drop(first);
        let minutes = Duration::from_secs(120);
        terminals.sweep(minutes, |_| None);
        assert!(terminals.has("a", &own));
        terminals.sweep(minutes, |opener| {
            (opener.actor == Actor::Key("k".to_owned())).then_some(TerminalEnd::Access)
        });
        assert_eq!(
            second.cut().await,
            AttachmentEvent::End(TerminalEnd::Access)
        );
        drop(second);
        assert!(terminals.attach("a", &own, SIZE).is_none());
    }

    #[tokio::test]
    async fn a_terminal_without_a_client_ends_after_its_time() {
        let terminals = Arc::<Terminals>::default();
        let (_listener, target) = silent().await;
        let own = opener(1, "k");
        let first = terminals.admit("a".to_owned(), own.clone(), SIZE, BOUNDS);
        drop(first.unwrap().begin(target));
        terminals.sweep(Duration::from_secs(120), |_| None);
        assert!(terminals.has("a", &own));
        terminals.sweep(Duration::ZERO, |_| None);
        assert!(terminals.is_empty());
    }

    struct Silent;

    impl russh::server::Handler for Silent {
        type Error = russh::Error;
    }

    #[tokio::test]
    async fn a_panic_in_the_connection_ends_the_terminal_and_frees_its_place() {
        let (listener, mut target) = silent().await;
        let pair = Ed25519Keypair::from_seed(&[7; 32]);
        let config = Arc::new(russh::server::Config {
            keys: vec![PrivateKey::new(KeypairData::Ed25519(pair), "").unwrap()],
            ..russh::server::Config::default()
        });
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let session = russh::server::run_stream(config, stream, Silent).await;
            drop(session.unwrap().await);
        });
        target.is_known =
            Box::new(|_| Box::pin(async { panic!("this panic is part of the test") }));
        let terminals = Arc::<Terminals>::default();
        let admitted = terminals.admit("a".to_owned(), opener(1, "k"), SIZE, BOUNDS);
        let attachment = admitted.unwrap().begin(target);
        assert_eq!(
            attachment.next().await,
            AttachmentEvent::End(TerminalEnd::Unreachable)
        );
        drop(attachment);
        assert!(terminals.is_empty());
    }

    #[tokio::test]
    async fn the_connection_to_a_server_that_falls_silent_ends_with_the_terminal() {
        let (listener, target) = silent().await;
        let terminals = Arc::<Terminals>::default();
        let admitted = terminals.admit("a".to_owned(), opener(1, "k"), SIZE, BOUNDS);
        let attachment = admitted.unwrap().begin(target);
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"SSH-2.0-silent\r\n").await.unwrap();
        // The key exchange has begun, in a task of russh.
        let mut received = [0; 256];
        assert!(stream.read(&mut received).await.unwrap() > 0);
        attachment.end();
        drop(attachment);
        let mut rest = Vec::new();
        let rest = stream.read_to_end(&mut rest);
        let ended = tokio::time::timeout(Duration::from_secs(10), rest).await;
        ended.expect("the connection is open").unwrap();
    }

    #[tokio::test]
    async fn a_server_that_sends_without_end_before_the_login_loses_its_connection() {
        let (listener, target) = silent().await;
        let terminals = Arc::<Terminals>::default();
        let admitted = terminals.admit("a".to_owned(), opener(1, "k"), SIZE, BOUNDS);
        let attachment = admitted.unwrap().begin(target);
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"SSH-2.0-endless\r\n").await.unwrap();
        let send = async {
            // SSH_MSG_IGNORE with an empty string and six bytes of padding.
            let packet = [0, 0, 0, 12, 6, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            let many = packet.repeat(4096);
            while stream.write_all(&many).await.is_ok() {}
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), send).await;
        ended.expect("the connection is open");
        assert_eq!(
            attachment.next().await,
            AttachmentEvent::End(TerminalEnd::Unreachable)
        );
    }
}
