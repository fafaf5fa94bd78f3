//! Acts of users on the shares of pages and ports, and of their visitors.

use super::instance::target;
use crate::act::Args;
use crate::acts;
use crate::model::Ask;
use crate::setup::USERS;
use crate::sim::{Sim, selector};
use std::time::Duration;
use wharf_db::Read as _;
use wharf_domain::ids::InstanceId;
use wharf_domain::instance::Instance;
use wharf_domain::share::ShareAccess;
use wharf_ground::caller::Caller;
use wharf_instances::{Selector, ShareUpdate};

acts![
    share 6,
    change_share 3,
    withdraw_share 3,
];

/// The page of the flavor, and ports inside.
const PAGES: [Option<u16>; 4] = [None, None, Some(8000), Some(5000)];

fn access(args: Args) -> ShareAccess {
    match args.number(3, 4) {
        0 => ShareAccess::Public,
        1 => ShareAccess::SignedIn,
        2 => ShareAccess::Owner,
        _ => {
            let other = args.of(2, &USERS).unwrap_or_default();
            ShareAccess::Users(vec![other.to_owned()])
        }
    }
}

/// A page of an instance of any user, whose owner asks.
struct Page {
    who: &'static str,
    caller: Caller,
    id: InstanceId,
    selector: Selector,
    port: Option<u16>,
}

impl Page {
    fn of(sim: &Sim, args: Args) -> Option<Self> {
        Self::at(sim, args, |_| true, &PAGES)
    }

    /// A page of an instance that fits, at one of these ports.
    fn at(
        sim: &Sim,
        args: Args,
        fits: impl Fn(&Instance) -> bool,
        ports: &[Option<u16>],
    ) -> Option<Self> {
        let of = target(sim, args, fits)?;
        Some(Self {
            who: of.who,
            caller: of.caller,
            id: of.instance.id,
            selector: selector(&of.instance, false),
            port: args.of(2, ports)?,
        })
    }

    /// A page that is shared, if there is one.
    fn shared(sim: &Sim, args: Args) -> Option<Self> {
        let ports = |instance: &Instance| {
            let mut users = sim.outside.users.iter();
            let owner = users.find(|user| user.user == instance.owner)?;
            let shares = sim.app.shares(owner, &selector(instance, false)).ok()?;
            Some(shares.into_iter().map(|share| share.port).collect())
        };
        let ports = |instance: &Instance| -> Vec<_> { ports(instance).unwrap_or_default() };
        let mut page = Self::at(sim, args, |one| !ports(one).is_empty(), &PAGES)?;
        let instance = sim.db.read(|rows| rows.instance(page.id)).ok()??;
        page.port = args.of(2, &ports(&instance)).unwrap_or(page.port);
        Some(page)
    }

    fn words(&self) -> String {
        format!("{:?} of {}", self.port, self.id)
    }

    fn ask(&self, shared: bool) -> Option<Ask> {
        let (id, port) = (self.id, self.port);
        Some(Ask::Share { id, port, shared })
    }
}

async fn share(sim: Sim, args: Args) {
    let Some(page) = Page::of(&sim, args) else {
        return;
    };
    let access = access(args);
    let expires_at = args.is_one_in(2, 3).then(|| {
        let span = Duration::from_secs(1 + args.number(3, 3000));
        sim.app.clock().system().plus(span)
    });
    let words = format!("shares {} with {access}", page.words());
    let shared = sim
        .app
        .share(&page.caller, &page.selector, page.port, access, expires_at);
    sim.ask(page.who, words, page.ask(true), shared, |_| None)
        .await;
}

async fn change_share(sim: Sim, args: Args) {
    let Some(page) = Page::shared(&sim, args) else {
        return;
    };
    let access = access(args);
    let words = format!("changes the share of {} to {access}", page.words());
    let update = ShareUpdate {
        access: Some(access),
        expires_at: args.is_one_in(1, 3).then_some(None),
    };
    let changed = sim
        .app
        .update_share(&page.caller, &page.selector, page.port, update);
    sim.ask(page.who, words, page.ask(true), changed, |_| None)
        .await;
}

async fn withdraw_share(sim: Sim, args: Args) {
    let Some(page) = Page::shared(&sim, args) else {
        return;
    };
    let words = format!("withdraws the share of {}", page.words());
    let withdrawn = sim
        .app
        .withdraw_share(&page.caller, &page.selector, page.port);
    sim.ask(page.who, words, page.ask(false), withdrawn, |()| None)
        .await;
}
