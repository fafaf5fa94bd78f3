//! Ends connections: those on which nothing happens, and at shutdown all of them. One task looks at
//! all of a listener's, so that a request costs none of them a timer.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

/// Looks in the time that a connection may be idle: it ends one of them late at most.
const LOOKS: u32 = 4;
/// Most time between two.
const LOOK: Duration = Duration::from_secs(1);

/// How long a connection that was told to end may still take to read its last answer.
const LINGER: Duration = Duration::from_secs(60);

/// The same when the server ends. Who is silent, as an HTTP/2 peer may be for ever, is not waited for.
const LAST_LINGER: Duration = Duration::from_secs(5);

/// What a connection is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Order {
    GoOn,
    /// Take no further requests, and end with the last answer.
    End,
    /// End as it is.
    Drop,
}

/// One connection, as both sides see it.
#[derive(Debug, Default)]
pub(super) struct Activity {
    begun: AtomicU64,
    ended: AtomicU64,
    order: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl Activity {
    /// A request begins.
    pub(super) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// One has ended.
    pub(super) fn end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Woken with each new order from now on.
    pub(super) fn wake(&self, waker: &Waker) {
        *locked(&self.waker) = Some(waker.clone());
    }

    /// What there is to do now.
    pub(super) fn order(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::GoOn,
            1 => Order::End,
            _ => Order::Drop,
        }
    }

    fn tell(&self, order: Order) {
        if self.order.fetch_max(order as u8, Ordering::AcqRel) < order as u8
            && let Some(waker) = &*locked(&self.waker)
        {
            waker.wake_by_ref();
        }
    }
}

/// All connections of a listener.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// Since the last look.
    new: Mutex<Vec<Weak<Activity>>>,
    /// All are told to end.
    ending: AtomicBool,
}

/// One of them, and what was seen of it.
struct Watched {
    activity: Weak<Activity>,
    begun: u64,
    quiet: Duration,
    ending: bool,
}

impl Connections {
    /// Those of a new listener, and the task that watches them: see [`Self::watch`].
    pub(super) fn watched(
        idle: Duration,
        closing: watch::Receiver<bool>,
    ) -> (Arc<Self>, JoinSet<()>) {
        let connections = Arc::<Self>::default();
        let mut watching = JoinSet::new();
        watching.spawn({
            let connections = Arc::clone(&connections);
            async move { connections.watch(idle, closing).await }
        });
        (connections, watching)
    }

    /// One more.
    pub(super) fn add(&self) -> Arc<Activity> {
        let activity = Arc::<Activity>::default();
        locked(&self.new).push(Arc::downgrade(&activity));
        if self.ending.load(Ordering::SeqCst) {
            activity.tell(Order::End);
        }
        activity
    }

    /// Tells connections to end when no request is under way and none has begun for `idle`, and when
    /// `closing` turns true; then until there are none.
    async fn watch(&self, idle: Duration, mut closing: watch::Receiver<bool>) {
        let every = (idle / LOOKS).clamp(Duration::from_millis(1), LOOK);
        let mut tick = tokio::time::interval_at(Instant::now() + every, every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut all = Vec::new();
        let mut ending = false;
        loop {
            let mut passed = Duration::ZERO;
            tokio::select! {
                _ = tick.tick() => passed = every,
                // An error: the server itself is gone.
                _ = closing.wait_for(|closing| *closing), if !ending => {
                    ending = true;
                    self.ending.store(true, Ordering::SeqCst);
                }
            }
            all.retain_mut(|watched: &mut Watched| watched.look(passed, idle, ending));
            // The time that has passed is not theirs.
            let new = mem::take(&mut *locked(&self.new));
            let mut new: Vec<_> = new.into_iter().map(Watched::new).collect();
            new.retain_mut(|watched| watched.look(Duration::ZERO, idle, ending));
            all.append(&mut new);
            if ending && all.is_empty() {
                return;
            }
        }
    }
}

impl Watched {
    fn new(activity: Weak<Activity>) -> Self {
        Self {
            activity,
            begun: 0,
            quiet: Duration::ZERO,
            ending: false,
        }
    }

    /// False once it is gone.
    fn look(&mut self, passed: Duration, idle: Duration, ending: bool) -> bool {
        let Some(activity) = self.activity.upgrade() else {
            return false;
        };
        let begun = activity.begun.load(Ordering::Relaxed);
        let busy = begun != activity.ended.load(Ordering::Relaxed);
        if busy || begun != self.begun || ending != self.ending {
            (self.begun, self.quiet, self.ending) = (begun, Duration::ZERO, ending);
        } else {
            self.quiet += passed;
        }
        let quiet = self.quiet;
        activity.tell(match ending {
            true if quiet >= LAST_LINGER => Order::Drop,
            true => Order::End,
            false if quiet < idle => Order::GoOn,
            // Without any request so far there is no answer that could still be read.
            false if begun == 0 || quiet >= LINGER + idle => Order::Drop,
            false => Order::End,
        });
        true
    }
}

/// What is guarded is whole at all times.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
