//! Volumes on the bill. `usage.rs` has what they cost.

use super::{ANN, delete, id, ready};
use crate::bill::total_of;
use crate::{Expected, has, start};

#[test]
fn corrections_of_volumes_are_shown() {
    let (server, api) = start();
    let made = ready(&api, "data", 7);
    let correct = |amount: &str| {
        let reason = ["--reason", "an outage"];
        let words = ["bill", "correct", id(&made), amount];
        server.cli(&[&words[..], &reason].concat()).unwrap();
    };
    let bill = || server.cli(&["bill", ANN]).unwrap();
    let before = total_of(&bill());
    correct("-0.25");
    assert!((total_of(&bill()) - before + 0.25).abs() < 0.001);
    let of_volume = &api.get("/api/usage/").is(200)["volumes"][0];
    let correction = &of_volume["corrections"][0];
    assert_eq!(correction["usd"], -0.25, "{of_volume}");
    assert_eq!(correction["reason"], "an outage");
    let last = |api: &wharf_tests::Api| {
        let events = api.get("/api/event/?after=0").is(200);
        events.as_array().unwrap().last().unwrap().clone()
    };
    let event = last(&api);
    assert_eq!(event["type"], "bill-corrected");
    assert_eq!(event["volume"], made["id"]);
    assert_eq!(event["state"], "ready");
    assert_eq!(event["actor"]["kind"], "operator");
    has(&event["message"], "-0.250000000 USD: an outage");
    let of_operator = server.cli(&["events", id(&made)]).unwrap();
    has(&of_operator, "\tready\tvolume of 7 GiB\t");
    assert!(!of_operator.contains("vCPU"), "{of_operator}");
    assert!(!of_operator.contains("exited"), "{of_operator}");
    // The correction of a deleted volume.
    delete(&api, "data").is(204);
    let of_volume = &api.get("/api/usage/").is(200)["volumes"][0];
    assert_eq!(
        (&of_volume["state"], &of_volume["hourly_usd"]),
        (&"deleted".into(), &0.0.into())
    );
    let after = total_of(&bill());
    correct("0.5");
    assert!((total_of(&bill()) - after - 0.5).abs() < 1e-9);
    has(bill(), "volume of 7 GiB");
    has(bill(), id(&made));
    let event = last(&api);
    assert_eq!(
        (&event["type"], &event["state"]),
        (&"bill-corrected".into(), &"deleting".into())
    );
}
