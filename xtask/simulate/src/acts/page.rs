//! Acts of users on the shares of pages and ports, and of their visitors.

use crate::act::Args;
use crate::acts;
use crate::model::Ask;
use crate::setup::USERS;
use crate::sim::{Sim, selector};
use wharf_domain::instance::Instance;
use wharf_domain::share::ShareAccess;
use wharf_ground::caller::Caller;
use wharf_instances::ShareUpdate;

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
fn page(sim: &Sim, args: Args) -> Option<(&'static str, Caller, Instance, Option<u16>)> {
    let instances = sim.all_instances();
    let n = args.number(1, instances.len() as u64);
    let instance = instances.into_iter().nth(usize::try_from(n).ok()?)?;
    let (who, caller) = args.owner(sim, &instance)?;
    Some((who, caller, instance, args.of(2, &PAGES)?))
}

async fn share(sim: Sim, args: Args) {
    let Some((who, caller, instance, port)) = page(&sim, args) else {
        return;
    };
    let (id, access) = (instance.id, access(args));
    let expires_at = args.is_one_in(2, 3).then(|| {
        let span = std::time::Duration::from_secs(1 + args.number(3, 3000));
        sim.app.clock().system().plus(span)
    });
    let words = format!("shares {port:?} of {id} with {access}");
    let selector = selector(&instance, false);
    let shared = sim.app.share(&caller, &selector, port, access, expires_at);
    let ask = Ask::Share {
        id,
        port,
        shared: true,
    };
    sim.ask(who, words, Some(ask), shared, |_| None).await;
}

async fn change_share(sim: Sim, args: Args) {
    let Some((who, caller, instance, port)) = page(&sim, args) else {
        return;
    };
    let (id, access) = (instance.id, access(args));
    let words = format!("changes the share of {port:?} of {id} to {access}");
    let selector = selector(&instance, false);
    let update = ShareUpdate {
        access: Some(access),
        expires_at: args.is_one_in(1, 3).then_some(None),
    };
    let changed = sim.app.update_share(&caller, &selector, port, update);
    let ask = Ask::Share {
        id,
        port,
        shared: true,
    };
    sim.ask(who, words, Some(ask), changed, |_| None).await;
}

async fn withdraw_share(sim: Sim, args: Args) {
    let Some((who, caller, instance, port)) = page(&sim, args) else {
        return;
    };
    let id = instance.id;
    let words = format!("withdraws the share of {port:?} of {id}");
    let selector = selector(&instance, false);
    let withdrawn = sim.app.withdraw_share(&caller, &selector, port);
    let ask = Ask::Share {
        id,
        port,
        shared: false,
    };
    sim.ask(who, words, Some(ask), withdrawn, |()| None).await;
}
