//! Visitors of a port who read nothing hold up nobody else.

use super::shares::{Inside, at, inside, share};
use super::{DOMAIN, Visit, ask, get, label, port, signed_in};
use crate::{Expected, until_true, wait_until};
use serde_json::json;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use wharf_tests::settled;

/// Looks at bytes of the port without progress, after which all readers hold them back.
const LOOKS: u32 = 15;

/// The connections to a port of a visitor who reads nothing.
fn unread(port: u16, host: &str, headers: &str, count: usize) -> Vec<TcpStream> {
    let one = |_| ask(port, host, "/flood", headers);
    (0..count).map(one).collect()
}

/// Waits until bytes come from the port, and the readers hold them back.
fn held_back(one: &Inside, limit: Duration) {
    until_true("the port sends", || one.page.flooded() > 0);
    settled(LOOKS, limit, || one.page.flooded());
}

#[test]
fn a_visitor_who_reads_nothing_holds_up_no_other_visitor() {
    let one = inside("");
    let body = json!({ "port": one.port, "access": "signed_in" });
    let shared = at(&share(&one.ann, &one.instance, &body).is(201));
    let [bob, carol] = ["bob@example.com", "carol@example.com"]
        .map(|user| Visit::begin(&signed_in(&one.server, user), &shared));
    let held = unread(bob.port, &bob.host, &bob.headers(), 40);
    let limit = Duration::from_secs(30);
    held_back(&one, limit);
    let begin = Instant::now();
    for _ in 0..20 {
        let seen = carol.get("/");
        assert_eq!(seen.status, 200, "{seen:?}");
    }
    assert!(begin.elapsed() < limit, "{:?}", begin.elapsed());
    drop(held);
}

#[test]
fn many_visitors_who_read_nothing_give_way_to_others() {
    let one = inside("public = true\n");
    let body = json!({ "port": one.port, "access": "public" });
    let shared = at(&share(&one.ann, &one.instance, &body).is(201));
    let (port, host) = (port(&shared), format!("{}.{DOMAIN}", label(&shared)));
    let from = |number: usize| format!("X-Forwarded-For: 198.51.100.{number}\r\n");
    let held: Vec<_> = (1..=24)
        .flat_map(|number| unread(port, &host, &from(number), 2))
        .collect();
    let limit = Duration::from_secs(30);
    held_back(&one, limit);
    for number in 100..110 {
        let begin = Instant::now();
        wait_until("a place for another visitor", || {
            let seen = get(port, &host, "/", &from(number));
            Ok((seen.status == 200).then_some(()))
        });
        assert!(begin.elapsed() < limit, "{:?}", begin.elapsed());
    }
    drop(held);
}
