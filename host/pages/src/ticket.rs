//! Tickets: Wharf gives one to a visitor with a right, and the gateway takes it on the host of the page.

use crate::directory::Visitor;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;
use wharf_domain::secret::SecretText;

/// A redirect takes less.
const LIFETIME: Duration = Duration::from_secs(30);

/// The most tickets of one visitor, which are pages that open at once, and of all visitors.
const MAX_OF_VISITOR: usize = 32;
const MAX: usize = 10_000;

/// 192 bits.
const BYTES: usize = 24;

/// The longest state that a ticket is bound to.
const MAX_STATE: usize = 64;

/// Returns a new random text of 192 bits.
pub(crate) fn random_text() -> Option<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

/// The tickets that were not spent. They are gone after a restart, as any other that has ended.
#[derive(Default)]
pub(crate) struct Tickets {
    unspent: Mutex<HashMap<String, Ticket>>,
}

struct Ticket {
    visitor: Visitor,
    label: String,
    state: String,
    ends_at: Instant,
}

/// The place of a visit.
#[derive(Debug, Clone, Copy)]
pub struct PageInBrowser<'a> {
    /// The label of the page.
    pub label: &'a str,
    /// Random text that binds the ticket to the browser: a cookie of the page has it too.
    pub state: &'a str,
}

impl Tickets {
    /// Makes a ticket for a visitor to a page in a browser. There is none if too many are open.
    pub(crate) fn issue(
        &self,
        visitor: Visitor,
        at: PageInBrowser<'_>,
        now: Instant,
    ) -> Option<SecretText> {
        if at.state.is_empty() || at.state.len() > MAX_STATE {
            return None;
        }
        let text = random_text()?;
        let mut unspent = self.unspent.lock();
        unspent.retain(|_, ticket| now < ticket.ends_at);
        let of_visitor = unspent.values().filter(|ticket| ticket.visitor == visitor);
        if of_visitor.count() >= MAX_OF_VISITOR || unspent.len() >= MAX {
            return None;
        }
        let ticket = Ticket {
            visitor,
            label: at.label.to_owned(),
            state: at.state.to_owned(),
            ends_at: now + LIFETIME,
        };
        unspent.insert(text.clone(), ticket);
        Some(SecretText::new(text))
    }

    /// Spends a ticket. It is spent also if it was made for another label or browser.
    pub(crate) fn spend(&self, text: &str, at: PageInBrowser<'_>, now: Instant) -> Option<Visitor> {
        let ticket = self.unspent.lock().remove(text)?;
        let equal = ticket.state.as_bytes().ct_eq(at.state.as_bytes());
        let right = now < ticket.ends_at && ticket.label == at.label && bool::from(equal);
        right.then_some(ticket.visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::{LIFETIME, MAX_OF_VISITOR, PageInBrowser, Tickets};
    use crate::directory::Visitor;
    use std::time::Instant;

    fn at<'a>(label: &'a str, state: &'a str) -> PageInBrowser<'a> {
        PageInBrowser { label, state }
    }

    fn session(id: &str) -> Visitor {
        Visitor::Session(id.to_owned())
    }

    #[test]
    fn a_ticket_is_for_one_use_one_label_one_browser_and_a_short_time() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        let issue = || tickets.issue(session("1"), at("demo", "s"), now).unwrap();
        let spend = |ticket: &str, place, now| tickets.spend(ticket, place, now);
        let ticket = issue();
        assert_eq!(ticket.expose().len(), 32);
        assert_eq!(
            spend(ticket.expose(), at("demo", "s"), now),
            Some(session("1"))
        );
        assert_eq!(spend(ticket.expose(), at("demo", "s"), now), None);
        let late = now + LIFETIME;
        for (place, when) in [
            (at("demo", "t"), now),
            (at("demo", ""), now),
            (at("other", "s"), now),
            (at("demo", "s"), late),
        ] {
            let ticket = issue();
            assert_eq!(spend(ticket.expose(), place, when), None);
            assert_eq!(spend(ticket.expose(), at("demo", "s"), now), None);
        }
        assert!(tickets.issue(session("1"), at("demo", ""), now).is_none());
        assert!(
            tickets
                .issue(session("1"), at("demo", &"s".repeat(65)), now)
                .is_none()
        );
    }

    #[test]
    fn a_visitor_has_a_share_of_the_tickets() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        let issue = |id, now| tickets.issue(session(id), at("demo", "s"), now);
        for _ in 0..MAX_OF_VISITOR {
            issue("1", now).unwrap();
        }
        assert!(issue("1", now).is_none() && issue("2", now).is_some());
        assert!(issue("1", now + LIFETIME).is_some());
    }
}
