//! Bytes, requests and streams that the server holds for others: a bound in all, and a share for each owner,
//! so that none takes the share of another.

use super::access_log::Entry;
use super::client::{RequestClient, client};
use http::Extensions;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use wharf_domain::ids::UserId;

/// The parts of a bound on memory for one user, for all clients without a key or session, and for one network
/// of them. Several users and many networks have to act together to reach the bound.
const USER: u64 = 8;
const STRANGERS: u64 = 4;
const NETWORK: u64 = 64;

/// The owner that something is held for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum BudgetOwner {
    User(UserId),
    /// Clients without a key or session in one network.
    Network(IpAddr),
}

impl BudgetOwner {
    /// The owner of a request with these extensions.
    pub(super) fn of(extensions: &Extensions) -> Self {
        let user = extensions.get::<Entry>().and_then(|entry| entry.user.get());
        Self::new(user.copied(), client(extensions))
    }

    pub(super) fn new(user: Option<UserId>, client: Option<RequestClient>) -> Self {
        match (user, client) {
            (Some(user), _) => Self::User(user),
            (None, Some(client)) => Self::Network(client.site()),
            // The socket of the admin service, whose memory has no bound.
            (None, None) => Self::Network(Ipv4Addr::UNSPECIFIED.into()),
        }
    }
}

/// The bounds of a [`Budget`].
#[derive(Debug, Clone, Copy)]
pub(super) struct BudgetBounds {
    /// The bound of all owners together.
    pub(super) all: u64,
    /// The bound of one user.
    pub(super) user: u64,
    /// The bound of all networks together.
    pub(super) networks: u64,
    /// The bound of one network.
    pub(super) network: u64,
}

impl BudgetBounds {
    pub(super) const NONE: Self = Self {
        all: u64::MAX,
        user: u64::MAX,
        networks: u64::MAX,
        network: u64::MAX,
    };

    /// Memory of at most this number of bytes.
    pub(super) fn of_memory(bytes: u64) -> Self {
        Self {
            all: bytes,
            user: bytes / USER,
            networks: bytes / STRANGERS,
            network: bytes / NETWORK,
        }
    }
}

/// A bound on one kind of thing that the server holds for owners, and the share of each.
#[derive(Debug)]
pub(super) struct Budget {
    bounds: BudgetBounds,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: u64,
    networks: u64,
    owners: HashMap<BudgetOwner, u64>,
}

impl Budget {
    pub(super) fn new(bounds: BudgetBounds) -> Arc<Self> {
        Arc::new(Self {
            bounds,
            held: Mutex::default(),
        })
    }

    /// Whether an owner has its share, or nothing is left.
    pub(super) fn is_full(&self, owner: BudgetOwner) -> bool {
        self.held.lock().is_full(owner, &self.bounds)
    }

    /// Whether nothing is left for any owner.
    pub(super) fn is_spent(&self) -> bool {
        self.held.lock().all >= self.bounds.all
    }

    /// Holds an amount for an owner; none if its share is full. The last amount of a share may exceed it,
    /// so that a response can be larger than the share.
    pub(super) fn hold(self: &Arc<Self>, owner: BudgetOwner, amount: u64) -> Option<Hold> {
        let mut hold = self.holding(owner, 0);
        hold.grow(amount).then_some(hold)
    }

    /// Holds an amount for a refusal, for which an owner has an eighth more than its share; none if that is
    /// full too. Other owners cannot use it up.
    pub(super) fn hold_refusal(self: &Arc<Self>, owner: BudgetOwner, amount: u64) -> Option<Hold> {
        let mut held = self.held.lock();
        if held.share_is_full(owner, &self.bounds, |share| share.saturating_add(share / 8)) {
            return None;
        }
        held.change(owner, |held| held.saturating_add(amount));
        Some(self.holding(owner, amount))
    }

    /// Holds an amount for an owner even if its share is full.
    pub(super) fn hold_anyway(self: &Arc<Self>, owner: BudgetOwner, amount: u64) -> Hold {
        self.held
            .lock()
            .change(owner, |held| held.saturating_add(amount));
        self.holding(owner, amount)
    }

    /// The owner of an amount that is counted.
    fn holding(self: &Arc<Self>, owner: BudgetOwner, amount: u64) -> Hold {
        Hold {
            budget: Arc::clone(self),
            owner,
            amount,
        }
    }
}

impl Held {
    fn is_full(&self, owner: BudgetOwner, bounds: &BudgetBounds) -> bool {
        self.share_is_full(owner, bounds, |share| share) || self.all >= bounds.all
    }

    fn share_is_full(
        &self,
        owner: BudgetOwner,
        bounds: &BudgetBounds,
        of: impl Fn(u64) -> u64,
    ) -> bool {
        let own = self.owners.get(&owner).copied().unwrap_or_default();
        match owner {
            BudgetOwner::User(_) => own >= of(bounds.user),
            BudgetOwner::Network(_) => {
                own >= of(bounds.network) || self.networks >= of(bounds.networks)
            }
        }
    }

    fn change(&mut self, owner: BudgetOwner, change: impl Fn(u64) -> u64) {
        self.all = change(self.all);
        if matches!(owner, BudgetOwner::Network(_)) {
            self.networks = change(self.networks);
        }
        let own = self.owners.entry(owner).or_default();
        *own = change(*own);
        if *own == 0 {
            self.owners.remove(&owner);
        }
    }
}

/// An amount that is held for an owner until this is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    budget: Arc<Budget>,
    owner: BudgetOwner,
    amount: u64,
}

impl Hold {
    /// Holds a further amount; false if the share of the owner is full.
    pub(super) fn grow(&mut self, amount: u64) -> bool {
        let mut held = self.budget.held.lock();
        if held.is_full(self.owner, &self.budget.bounds) {
            return false;
        }
        held.change(self.owner, |held| held.saturating_add(amount));
        self.amount = self.amount.saturating_add(amount);
        true
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let amount = self.amount;
        let mut held = self.budget.held.lock();
        held.change(self.owner, |held| held.saturating_sub(amount));
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, BudgetBounds, BudgetOwner};
    use std::net::Ipv4Addr;
    use wharf_domain::ids::UserId;

    fn network(n: u32) -> BudgetOwner {
        BudgetOwner::Network(Ipv4Addr::from_bits(n).into())
    }

    #[test]
    fn a_party_is_refused_at_its_share_and_others_are_not() {
        let memory = Budget::new(BudgetBounds::of_memory(6_400));
        let (ann, bob) = (BudgetOwner::User(UserId(1)), BudgetOwner::User(UserId(2)));
        let mut of_ann = memory.hold(ann, 799).unwrap();
        // The last bytes exceed the share.
        assert!(of_ann.grow(1_000) && !of_ann.grow(1));
        assert!(memory.is_full(ann) && memory.hold(ann, 1).is_none());
        assert!(memory.hold_refusal(ann, 1).is_none());
        let _of_bob = memory.hold(bob, 1).unwrap();
        let anyway = memory.hold_anyway(ann, 5);
        drop(of_ann);
        assert!(!memory.is_full(ann));
        let of_network = memory.hold(network(1), 100).unwrap();
        assert!(memory.hold(network(1), 1).is_none());
        assert!(memory.hold_refusal(network(1), 1).is_some());
        drop((anyway, of_network));
        assert!(memory.hold(network(1), 1).is_some());
    }

    #[test]
    fn strangers_leave_memory_to_users_and_nobody_exceeds_the_whole() {
        let memory = Budget::new(BudgetBounds::of_memory(6_400));
        let strangers: Vec<_> = (0..100)
            .map_while(|n| memory.hold(network(n), 100))
            .collect();
        assert_eq!(strangers.len(), 16);
        let users: Vec<_> = (0..100)
            .map_while(|n| memory.hold(BudgetOwner::User(UserId(n)), 800))
            .collect();
        assert_eq!(users.len(), 6);
        let other = BudgetOwner::User(UserId(100));
        assert!(memory.hold(other, 1).is_none() && memory.hold_refusal(other, 1).is_some());
        drop((strangers, users));
        let held = memory.held.lock();
        assert_eq!((held.all, held.networks, held.owners.len()), (0, 0, 0));
    }
}
