//! Tickets for WebSockets and event streams over plain HTTP. A page sends the part of its token that no
//! cookie has in a header. Browsers let a page add no header to these two, so the URL names a ticket,
//! which stands for that part once.

use super::Accounts;
use super::session::{SessionId, id_name, parse_id};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;
use wharf_domain::error::{Error, FieldErrors, NON_FIELD_ERRORS};
use wharf_domain::secret::SecretText;
use wharf_ground::caller::Caller;
use wharf_ground::random::random_text;

/// The time in which a ticket can be spent: a page spends it at once.
const LIFETIME: Duration = Duration::from_secs(30);

/// The most tickets of a session: one for each of some tabs. The oldest makes room for a new one.
const MOST: usize = 16;

/// The tickets by session.
#[derive(Default)]
pub(super) struct Tickets(Mutex<HashMap<SessionId, VecDeque<Ticket>>>);

struct Ticket {
    sha256: [u8; 32],
    part: SecretText,
    ends: Instant,
}

impl Tickets {
    fn issue(&self, id: SessionId, part: SecretText, now: Instant) -> Result<SecretText, Error> {
        let text = SecretText::new(format!("{}.{}", id_name(id), random_text::<32>()?));
        let mut all = self.0.lock();
        all.retain(|_, tickets| {
            tickets.retain(|ticket| now < ticket.ends);
            !tickets.is_empty()
        });
        let tickets = all.entry(id).or_default();
        if tickets.len() >= MOST {
            tickets.pop_front();
        }
        tickets.push_back(Ticket {
            sha256: digest(text.expose()),
            part,
            ends: now + LIFETIME,
        });
        Ok(text)
    }

    fn spend(&self, text: &str, now: Instant) -> Option<SecretText> {
        let id = parse_id(text.split_once('.')?.0)?;
        let sha256 = digest(text);
        let mut all = self.0.lock();
        let tickets = all.get_mut(&id)?;
        let mut known = tickets.iter();
        let at = known.position(|ticket| bool::from(ticket.sha256.ct_eq(&sha256)))?;
        let ticket = tickets.remove(at)?;
        (now < ticket.ends).then_some(ticket.part)
    }
}

impl Accounts {
    /// Issues a ticket that stands for a part of the caller's token.
    pub fn issue_ticket(&self, caller: &Caller, part: SecretText) -> Result<SecretText, Error> {
        let id = parse_id(&caller.key_id).ok_or_else(|| {
            FieldErrors::one(NON_FIELD_ERRORS, "a ticket is of a session, not of a key")
        })?;
        self.tickets.issue(id, part, Instant::now())
    }

    /// Returns the part that a ticket stands for, and ends the ticket.
    pub fn spend_ticket(&self, ticket: &str) -> Option<SecretText> {
        self.tickets.spend(ticket, Instant::now())
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::{LIFETIME, MOST, Tickets};
    use std::time::{Duration, Instant};
    use wharf_domain::secret::SecretText;

    #[test]
    fn tickets_are_spent_once_expire_and_are_bounded() {
        let (tickets, start) = (Tickets::default(), Instant::now());
        let issue = |session: u8, at| {
            let part = SecretText::new(session.to_string());
            tickets.issue([session; 8], part, at).unwrap()
        };
        let spend = |text: &SecretText, at| {
            let part = tickets.spend(text.expose(), at);
            part.map(|part| part.expose().to_owned())
        };
        let (one, two) = (issue(1, start), issue(2, start));
        assert_eq!(spend(&one, start).as_deref(), Some("1"));
        assert_eq!(spend(&one, start), None);
        assert_eq!(spend(&two, start + LIFETIME), None);
        let oldest = issue(1, start);
        let other = issue(2, start);
        for _ in 0..MOST {
            issue(1, start);
        }
        assert_eq!(spend(&oldest, start), None);
        assert_eq!(spend(&other, start).as_deref(), Some("2"));
        issue(2, start + LIFETIME + Duration::from_secs(1));
        assert_eq!(tickets.0.lock().len(), 1);
        for wrong in ["", "x", "0202020202020202.x"] {
            assert_eq!(tickets.spend(wrong, start), None);
        }
    }
}
