//! The exchanges that are open: requests whose responses were not sent, and WebSockets. Each counts for its page
//! and its user, and ends with the right of its visitor, with its instance, and after silence.

use crate::connection::Running;
use crate::directory::{Directory, Page, PageState, Right, Upstream, Visitor};
use crate::flow::Flow;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use wharf_domain::ids::UserId;

/// The interval between two looks at all exchanges.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The longest pause of a side that has to send or to read.
const STALLED: Duration = Duration::from_secs(60);

/// The longest silence of a page or a WebSocket. JupyterLab pings every 30 seconds.
const SILENT: Duration = Duration::from_secs(600);

/// The exchanges with a slow side, of one user and of all. Each holds bytes for that side.
const SLOW_OF_USER: usize = 64;
const SLOW: usize = 512;

/// The user that exchanges count for, or everyone on the public pages of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PageUser {
    user: UserId,
    is_anyone: bool,
}

/// The bounds on exchanges.
#[derive(Debug, Clone, Copy)]
pub struct PageLimits {
    pub connections_per_page: usize,
    pub connections_per_user: usize,
}

/// All open exchanges.
pub(crate) struct Exchanges {
    limits: PageLimits,
    open: Mutex<OpenExchanges>,
}

#[derive(Default)]
struct OpenExchanges {
    begun: u64,
    exchanges: HashMap<u64, Arc<Exchange>>,
    pages: HashMap<String, usize>,
    users: HashMap<PageUser, usize>,
}

/// One request and its response, or one WebSocket.
pub(crate) struct Exchange {
    label: String,
    upstream: Upstream,
    visitor: Visitor,
    user: PageUser,
    /// From the visitor to the page. A WebSocket has all its bytes in `down`.
    pub(crate) up: Flow,
    /// From the page to the visitor.
    pub(crate) down: Flow,
    ended: AtomicBool,
    /// The connection to the page, once there is one.
    driver: Mutex<Option<AbortHandle>>,
    /// Closes the visitor's connection, if it serves nothing else.
    closing: Option<Arc<Notify>>,
}

impl Exchange {
    /// Ties the connection to the page to this exchange. False if the exchange has ended meanwhile.
    pub(crate) fn drive(&self, driver: AbortHandle) -> bool {
        let mut place = self.driver.lock();
        let lives = !self.ended.load(Ordering::Acquire);
        if lives {
            *place = Some(driver);
        } else {
            driver.abort();
        }
        lives
    }

    /// The connection to the page serves another exchange from now on.
    pub(crate) fn release(&self) {
        *self.driver.lock() = None;
    }

    fn end(&self) {
        let driver = {
            let mut place = self.driver.lock();
            self.ended.store(true, Ordering::Release);
            place.take()
        };
        if let Some(driver) = driver {
            driver.abort();
        }
        if let Some(closing) = &self.closing {
            closing.notify_one();
        }
    }

    /// Whether its page is unchanged and its visitor may still see it.
    fn is_of(&self, page: Option<&Page>) -> bool {
        let state = page.map(|page| &page.state);
        matches!(state, Some(PageState::Running(upstream)) if *upstream == self.upstream)
    }

    /// Whether a side reads or sends slowly, for which bytes are held.
    fn is_slow(&self) -> bool {
        self.up.is_slow() || self.down.is_slow()
    }

    fn is_overdue(&self) -> bool {
        let (up, down) = (self.up.look(), self.down.look());
        if up.is_zero() && !self.up.is_at_rest() {
            // A page listens while it gets a body.
            self.down.touch(0);
        }
        up >= STALLED
            || down
                >= if self.down.is_silent() {
                    SILENT
                } else {
                    STALLED
                }
    }
}

/// An exchange that counts until this is dropped.
pub(crate) struct Held {
    exchanges: Arc<Exchanges>,
    number: u64,
    exchange: Arc<Exchange>,
    running: Option<Running>,
}

impl Held {
    /// The visitor's connection is busy for as long.
    pub(crate) fn with(mut self, running: Running) -> Self {
        self.running = Some(running);
        self
    }

    pub(crate) fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.exchanges.open.lock().close(self.number);
    }
}

impl Exchanges {
    pub(crate) fn new(limits: PageLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            open: Mutex::default(),
        })
    }

    /// Opens an exchange; none if its page or its user has too many.
    pub(crate) fn begin(
        self: &Arc<Self>,
        page: &Page,
        upstream: &Upstream,
        visitor: Visitor,
        right: Right,
        closing: Option<Arc<Notify>>,
    ) -> Option<Held> {
        let mut open = self.open.lock();
        let of_page = open.pages.get(&page.label).copied().unwrap_or_default();
        let user = PageUser {
            user: right.user,
            is_anyone: visitor == Visitor::Anyone,
        };
        let of_user = open.users.get(&user).copied().unwrap_or_default();
        // Others leave a quarter of a page to its owner.
        let all = self.limits.connections_per_page;
        let of_others = all - all / 4;
        let of_visitors = if right.is_owner { all } else { of_others };
        if of_page >= of_visitors || of_user >= self.limits.connections_per_user {
            return None;
        }
        open.pages.insert(page.label.clone(), of_page + 1);
        open.users.insert(user, of_user + 1);
        let number = open.begun;
        open.begun += 1;
        let exchange = Arc::new(Exchange {
            label: page.label.clone(),
            upstream: upstream.clone(),
            visitor,
            user,
            up: Flow::at_rest(),
            down: Flow::silent(),
            ended: AtomicBool::new(false),
            driver: Mutex::default(),
            closing,
        });
        open.exchanges.insert(number, Arc::clone(&exchange));
        Some(Held {
            exchanges: Arc::clone(self),
            number,
            exchange,
            running: None,
        })
    }

    /// Ends the exchanges that must. Visitors with many of them are asked for once.
    pub(crate) fn look(&self, directory: &dyn Directory) {
        let exchanges: Vec<_> = self.open.lock().exchanges.values().cloned().collect();
        let mut allowed: HashMap<(&str, &Visitor), Option<Page>> = HashMap::new();
        for exchange in &exchanges {
            let of = (exchange.label.as_str(), &exchange.visitor);
            let page = allowed.entry(of).or_insert_with(|| {
                let page = directory.page(&exchange.label)?;
                let has_right = directory.keeps_right(&page, &exchange.visitor);
                (has_right && page.moved_to.is_none()).then_some(page)
            });
            if !exchange.is_of(page.as_ref()) || exchange.is_overdue() {
                exchange.end();
            }
        }
        end_slow(&exchanges);
    }
}

/// Ends slow exchanges of users with more of them than their share.
fn end_slow(exchanges: &[Arc<Exchange>]) {
    let mut users: HashMap<PageUser, Vec<&Exchange>> = HashMap::new();
    for exchange in exchanges.iter().filter(|exchange| exchange.is_slow()) {
        users.entry(exchange.user).or_default().push(exchange);
    }
    let share = (SLOW / users.len().max(1)).clamp(1, SLOW_OF_USER);
    for exchange in users.values().flat_map(|slow| slow.iter().skip(share)) {
        exchange.end();
    }
}

impl OpenExchanges {
    fn close(&mut self, number: u64) {
        let Some(exchange) = self.exchanges.remove(&number) else {
            return;
        };
        if let Some(count) = self.pages.get_mut(&exchange.label) {
            *count -= 1;
            if *count == 0 {
                self.pages.remove(&exchange.label);
            }
        }
        if let Some(count) = self.users.get_mut(&exchange.user) {
            *count -= 1;
            if *count == 0 {
                self.users.remove(&exchange.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Exchanges, Held, PageLimits, SLOW_OF_USER};
    use crate::directory::{Page, PageState, Right, Upstream, UpstreamAddress, Visitor};
    use crate::flow::SLOW as SLOW_BYTES;
    use crate::one_page::OnePage;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use wharf_domain::ids::{InstanceId, UserId};

    const USER: UserId = UserId(1);
    const RIGHT: Right = Right {
        user: USER,
        is_owner: false,
    };

    fn begin(exchanges: &Arc<Exchanges>) -> (OnePage, Held) {
        let instance = InstanceId(uuid::Uuid::nil());
        let upstream = Upstream {
            instance,
            incarnation: 1,
            address: UpstreamAddress::Inside(1),
            credential: None,
        };
        let page = Page {
            label: "demo".to_owned(),
            moved_to: None,
            owner: USER,
            instance,
            state: PageState::Running(upstream.clone()),
            is_public: true,
        };
        let held = exchanges.begin(&page, &upstream, Visitor::Anyone, RIGHT, None);
        (OnePage(page, RIGHT), held.unwrap())
    }

    /// Looks until the exchange ends, and calls `between` after each look. Returns the number of looks.
    fn looks(between: impl Fn(&Held, u32)) -> u32 {
        let exchanges = Exchanges::new(PageLimits {
            connections_per_page: 1,
            connections_per_user: 1,
        });
        let (directory, held) = begin(&exchanges);
        for n in 0..5_000 {
            exchanges.look(&directory);
            if held.exchange().ended.load(Ordering::Acquire) {
                return n;
            }
            between(&held, n);
        }
        u32::MAX
    }

    #[test]
    fn a_side_that_is_due_has_a_minute_and_a_silent_page_has_ten() {
        assert_eq!(looks(|_, _| {}), 1_200);
        // A visitor that does not read, and one that does not send.
        assert_eq!(looks(|held, _| held.exchange().down.wait()), 120);
        assert_eq!(looks(|held, _| held.exchange().up.wait()), 120);
        // Bytes that have passed begin the time anew.
        let once = |held: &Held, n| {
            held.exchange().down.wait();
            if n == 100 {
                held.exchange().down.touch(0);
            }
        };
        assert_eq!(looks(once), 101 + 120);
        // A page that gets a body is not silent.
        let uploads = |held: &Held, n| {
            held.exchange().up.wait();
            if n < 2_000 {
                held.exchange().up.touch(0);
            }
        };
        assert_eq!(looks(uploads), 2_000 + 120);
        assert_eq!(looks(|held, _| held.exchange().down.touch(0)), u32::MAX);
    }

    #[test]
    fn a_user_has_a_share_of_the_exchanges_with_a_slow_side() {
        let exchanges = Exchanges::new(PageLimits {
            connections_per_page: 1_000,
            connections_per_user: 1_000,
        });
        let begun: Vec<_> = (0..100).map(|_| begin(&exchanges)).collect();
        let left = || {
            let ended = |held: &&Held| held.exchange().ended.load(Ordering::Acquire);
            begun.len() - begun.iter().map(|(_, held)| held).filter(ended).count()
        };
        // Silence is no fault of the visitor, and bytes that pass are none.
        for _ in 0..5 {
            exchanges.look(&begun[0].0);
        }
        begun
            .iter()
            .for_each(|(_, held)| held.exchange().down.wait());
        for _ in 0..5 {
            begun
                .iter()
                .for_each(|(_, held)| held.exchange().down.touch(SLOW_BYTES));
            exchanges.look(&begun[0].0);
        }
        assert_eq!(left(), 100);
        for _ in 0..3 {
            exchanges.look(&begun[0].0);
        }
        assert_eq!(left(), SLOW_OF_USER);
    }

    #[test]
    fn nothing_stays_counted() {
        let exchanges = Exchanges::new(PageLimits {
            connections_per_page: 1,
            connections_per_user: 1,
        });
        drop(begin(&exchanges));
        drop(begin(&exchanges));
        let open = exchanges.open.lock();
        assert!(open.exchanges.is_empty() && open.pages.is_empty() && open.users.is_empty());
    }
}
