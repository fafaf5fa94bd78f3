//! Sessions of the console. A token is `ID.SECRET.PART`. The id is public. The database stores only the
//! SHA-256 of the whole token, as the secret and the part have 256 random bits each. Over plain HTTP the
//! cookie lacks the part, which only pages of the console have.

use super::disabled::is_disabled;
use super::{Accounts, AnonymousSender};
use crate::last_use::LastUse;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use wharf_config::SessionConfig;
use wharf_db::{Changes, Db, Rows, Table, View, tables};
use wharf_domain::audit::Origin;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::scope::Scopes;
use wharf_domain::secret::SecretText;
use wharf_domain::time::Timestamp;
use wharf_ground::audit;
use wharf_ground::caller::{Caller, Credential};
use wharf_ground::random::{fill, random_text};
use wharf_ground::users::USERS;

/// The most sessions of one user. The oldest makes room for a new one.
const MAX_SESSIONS: usize = 10;

tables! {
    /// Sessions of a user by id.
    pub const SESSIONS: Table<UserId, SessionId, SessionRow> =
        Table::bounded(b's', 0, "10 of a user; the oldest makes room", "Until it ends or expires")
            .of(&USERS);
    /// The last use of a session, to the minute.
    pub const SESSION_USES: Table<UserId, SessionId, Timestamp> =
        Table::part_of(&SESSIONS, b's', 1);
}

/// The public id of a session.
pub type SessionId = [u8; 8];

/// A session. Its token is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    /// SHA-256 of the whole token.
    pub sha256: [u8; 32],
    /// Time of the sign-in.
    pub created_at: Timestamp,
}

/// The sessions of a user, expired ones included.
pub(super) fn sessions_of(
    rows: &impl Rows,
    user: UserId,
) -> Result<Vec<(SessionId, SessionRow)>, Error> {
    rows.under(&SESSIONS, &user)?.collect()
}

/// The sessions by id.
pub(super) type Sessions = HashMap<SessionId, Arc<ValidSession>>;

/// A session that was not ended. It may have expired.
pub(super) struct ValidSession {
    name: Arc<str>,
    row: SessionRow,
    pub(super) user: UserId,
    email: Arc<str>,
    pub(super) last_use: LastUse,
}

impl ValidSession {
    pub(super) fn expires_at(&self, config: &SessionConfig) -> Timestamp {
        const HOUR_MS: i64 = 3_600_000;
        let last_use = self.last_use.get().unwrap_or(self.row.created_at);
        let idle = last_use.0 + i64::from(config.idle_hours) * HOUR_MS;
        let absolute = self.row.created_at.0 + i64::from(config.absolute_days) * 24 * HOUR_MS;
        Timestamp(idle.min(absolute))
    }
}

/// A new session. Its token is not stored.
#[derive(Debug)]
pub struct NewSession {
    pub id: String,
    pub user: UserId,
    /// The whole token.
    pub token: SecretText,
}

/// The times of a session.
#[derive(Debug, Clone, Copy)]
pub struct SessionInfo {
    pub created_at: Timestamp,
    /// The end of the session if it is not used any more.
    pub expires_at: Timestamp,
}

/// Reads all sessions.
pub(super) fn load(db: &Db) -> Result<Sessions, Error> {
    db.read(|rows| {
        let mut sessions = Sessions::new();
        for row in rows.all(&SESSIONS)? {
            let (user, id, row) = row?;
            if let Some(email) = rows.get(&USERS, user)? {
                let last_use = rows.get(&SESSION_USES, (user, id))?;
                sessions.insert(id, valid(user, id, row, &email, last_use));
            }
        }
        Ok(sessions)
    })
}

fn valid(
    user: UserId,
    id: SessionId,
    row: SessionRow,
    email: &str,
    last_use: Option<Timestamp>,
) -> Arc<ValidSession> {
    Arc::new(ValidSession {
        name: id_name(id).into(),
        row,
        user,
        email: email.into(),
        last_use: LastUse::new(last_use),
    })
}

impl Accounts {
    /// Begins a session of a user. `decide` returns the changes that the way of signing in makes in
    /// that write, or refuses it. `method` names the way in the audit log.
    pub async fn begin_session(
        &self,
        visitor: &AnonymousSender,
        user: UserId,
        method: &'static str,
        decide: impl Fn(&View<'_>, &Origin) -> Result<Changes, Error> + Send + 'static,
    ) -> Result<NewSession, Error> {
        let begun = self.begin_session_of(visitor, method, move |view, origin| {
            if is_disabled(view.rows, user)? {
                return Err(Error::SignInRefused);
            }
            Ok((user, decide(view, origin)?))
        });
        let begun = begun.await;
        if begun.is_err() {
            // The caller may have ended sessions in memory.
            self.refresh(user)?;
        }
        begun
    }

    /// Begins a session of the user that `decide` returns with the changes of that write.
    pub(super) async fn begin_session_of(
        &self,
        visitor: &AnonymousSender,
        method: &'static str,
        decide: impl Fn(&View<'_>, &Origin) -> Result<(UserId, Changes), Error> + Send + 'static,
    ) -> Result<NewSession, Error> {
        let (id, token) = random_token()?;
        let sha256: [u8; 32] = Sha256::digest(token.expose().as_bytes()).into();
        let origin = visitor.origin(&id_name(id));
        let written = self.db.write_essential(move |view| {
            let (user, mut changes) = decide(view, &origin)?;
            if is_disabled(view.rows, user)? {
                return Err(Error::SignInRefused);
            }
            let mut sessions = sessions_of(view.rows, user)?;
            sessions.sort_by_key(|(_, row)| row.created_at);
            let surplus = (sessions.len() + 1).saturating_sub(MAX_SESSIONS);
            for (oldest, _) in sessions.iter().take(surplus) {
                changes = changes.remove(&SESSIONS, (user, *oldest));
            }
            let row = SessionRow {
                sha256,
                created_at: view.system,
            };
            let (subject, owner) = (id_name(id), Some(user));
            let audited = audit::record(view, &origin, "session.begin", owner, &subject, method);
            Ok((user, changes.put(&SESSIONS, (user, id), row).with(audited)))
        });
        let user = written.await?;
        self.refresh(user)?;
        Ok(NewSession {
            id: id_name(id),
            user,
            token,
        })
    }

    /// The time at which the session of a caller began.
    pub(super) fn begin_of(&self, caller: &Caller) -> Option<Timestamp> {
        let sessions = self.sessions.load();
        let session = sessions.get(&parse_id(&caller.key_id)?)?;
        (caller.credential == Credential::Session).then_some(session.row.created_at)
    }

    /// Returns the caller with a token, if its session is valid. Digests are compared in constant
    /// time.
    pub fn authenticate_session(&self, token: &str, request_id: Arc<str>) -> Option<Caller> {
        let id = parse_id(token.split_once('.')?.0)?;
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let sessions = self.sessions.load();
        let session = sessions.get(&id)?;
        let now = self.clock.system();
        let config = self.config.get().session;
        let is_right = bool::from(session.row.sha256.ct_eq(&digest));
        if !config.enabled || !is_right || !self.holds(session, now, &config) {
            return None;
        }
        session.last_use.set(now);
        Some(Caller {
            user: session.user,
            email: Arc::clone(&session.email),
            key_id: Arc::clone(&session.name),
            credential: Credential::Session,
            scopes: Scopes::OF_USERS,
            expires_at: None,
            peer: None,
            request_id,
        })
    }

    /// Returns the times of the session of a caller.
    pub fn session(&self, caller: &Caller) -> Option<SessionInfo> {
        let sessions = self.sessions.load();
        let session = sessions.get(&parse_id(&caller.key_id)?)?;
        Some(SessionInfo {
            created_at: session.row.created_at,
            expires_at: session.expires_at(&self.config.get().session),
        })
    }

    fn holds(&self, session: &ValidSession, now: Timestamp, config: &SessionConfig) -> bool {
        now < session.expires_at(config) && !self.keys.access.is_disabled(session.user)
    }

    pub(crate) fn is_valid_session(&self, id: &str) -> bool {
        let (sessions, config) = (self.sessions.load(), self.config.get());
        let session = parse_id(id).and_then(|id| sessions.get(&id));
        session.is_some_and(|session| self.holds(session, self.clock.system(), &config.session))
    }

    /// Returns the user of a valid session with the e-mail address, by its id.
    pub fn user_of_session(&self, id: &str) -> Option<(UserId, Arc<str>)> {
        let (sessions, config) = (self.sessions.load(), self.config.get());
        let session = sessions.get(&parse_id(id)?)?;
        let now = self.clock.system();
        let holds = config.session.enabled && self.holds(session, now, &config.session);
        holds.then(|| (session.user, Arc::clone(&session.email)))
    }

    /// Notes that a session is in use now. A request for a page by name is a use of it.
    pub fn use_session(&self, id: &str) {
        if let Some(session) = parse_id(id).and_then(|id| self.sessions.load().get(&id).cloned()) {
            session.last_use.set(self.clock.system());
        }
    }

    /// Returns whether a session was not ended. It may have expired.
    pub(crate) fn is_known_session(&self, id: &str) -> bool {
        let sessions = self.sessions.load();
        parse_id(id).is_some_and(|id| sessions.contains_key(&id))
    }

    /// Ends sessions of a user: the one with this id, or all of them.
    pub async fn end_sessions(&self, caller: &Caller, only: Option<&str>) -> Result<(), Error> {
        let (user, origin) = (caller.user, caller.origin());
        let only = only.and_then(parse_id);
        let wanted = move |id: SessionId| only.is_none_or(|only| only == id);
        self.forget(user, wanted);
        let written = self.db.write_essential(move |view| {
            let mut changes = Changes::none();
            for (id, _) in sessions_of(view.rows, user)? {
                if wanted(id) {
                    let (subject, owner) = (id_name(id), Some(user));
                    let audited =
                        audit::record(view, &origin, "session.end", owner, &subject, "ended");
                    changes = changes.remove(&SESSIONS, (user, id)).with(audited);
                }
            }
            Ok(((), changes))
        });
        let written = written.await;
        self.refresh(user)?;
        written
    }

    /// Ends sessions in memory at once. If the caller goes away, the write still happens.
    pub(super) fn forget(&self, user: UserId, wanted: impl Fn(SessionId) -> bool) {
        self.sessions.rcu(|sessions| {
            let mut changed = Sessions::clone(sessions);
            changed.retain(|id, session| session.user != user || !wanted(*id));
            changed
        });
        self.keys.access.notify();
    }

    /// Makes memory follow the rows of a user.
    pub(super) fn refresh(&self, user: UserId) -> Result<(), Error> {
        // Older rows must not replace newer ones.
        let _alone = self.refreshing.lock();
        let (email, rows) = self.db.read(|rows| {
            let email = rows.get(&USERS, user)?.unwrap_or_default();
            let mut found = Vec::new();
            for (id, row) in sessions_of(rows, user)? {
                found.push((id, row, rows.get(&SESSION_USES, (user, id))?));
            }
            Ok((email, found))
        })?;
        self.sessions.rcu(|sessions| {
            let mut changed = Sessions::clone(sessions);
            changed.retain(|id, session| {
                session.user != user || rows.iter().any(|(row, ..)| row == id)
            });
            for (id, row, last_use) in &rows {
                let new = || valid(user, *id, row.clone(), &email, *last_use);
                changed.entry(*id).or_insert_with(new);
            }
            changed
        });
        self.keys.access.notify();
        Ok(())
    }
}

/// The changes that end the sessions of a user, but not the one that is kept.
pub(super) fn end_others(
    view: &View<'_>,
    user: UserId,
    kept: Option<SessionId>,
) -> Result<Changes, Error> {
    let sessions = sessions_of(view.rows, user)?.into_iter();
    let others = sessions.filter(|(id, _)| Some(*id) != kept);
    Ok(others.fold(Changes::none(), |changes, (id, _)| {
        changes.remove(&SESSIONS, (user, id))
    }))
}

fn random_token() -> Result<(SessionId, SecretText), Error> {
    let mut id = [0; 8];
    fill(&mut id)?;
    let (secret, part) = (random_text::<32>()?, random_text::<32>()?);
    let token = format!("{}.{secret}.{part}", id_name(id));
    Ok((id, SecretText::new(token)))
}

/// A public id as text.
pub(crate) fn id_name(id: SessionId) -> String {
    format!("{:016x}", u64::from_be_bytes(id))
}

pub(crate) fn parse_id(name: &str) -> Option<SessionId> {
    let digits = name.len() == 16 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let id = u64::from_str_radix(name, 16).ok().filter(|_| digits)?;
    Some(id.to_be_bytes())
}
