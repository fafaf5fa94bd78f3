//! The conformance suite is worth something only if it notices: the same service, wrong in one way
//! at a time, fails the rule that says so. (That it passes when it is right is the suite's own test.)

use crate::distorting::Distort::{self, By, Status, Text, Without};
use crate::distorting::serve;
use xtask::conformance::check::Verdict;
use xtask::conformance::{Options, OwnServer, Target, hold_against};

/// What to check, what is wrong, and the rule that fails for it.
const WRONGS: [(&str, Distort, &str); 20] = [
    (
        "get of what does not exist",
        Without("x-request-id"),
        "every answer carries X-Request-Id",
    ),
    (
        "get of what does not exist",
        Without("content-type"),
        "every body is JSON, and says so in Content-Type",
    ),
    (
        "get of what does not exist",
        Status(404, 500),
        "no answer is a 5xx but 502 for a host out of reach",
    ),
    (
        "get of what does not exist",
        By(|head, a| {
            if a.status == 404 {
                let key = head.split("Bearer ").nth(1).unwrap_or("");
                let key = key.lines().next().unwrap_or("");
                a.replace("not found", &format!("not found for {key}"));
            }
        }),
        "no answer shows an API key or a secret given at creation",
    ),
    (
        "`uuid` of a container",
        Text("\"wan_ports\":", "\"extra\":1,\"wan_ports\":"),
        "every answer agrees with the service's OpenAPI document",
    ),
    (
        "`webapp_url` of a container",
        Text("\"webapp_url\":null,", ""),
        "`webapp_url` of a container is a string or null in get and list",
    ),
    (
        "list without a valid key",
        Status(401, 403),
        "list without a valid key is 401",
    ),
    (
        "list without a valid key",
        Without("www-authenticate"),
        "every 401 carries WWW-Authenticate: Bearer",
    ),
    (
        "get of another user's",
        By(|head, a| {
            if a.status == 404 && !head.contains("/conf-") {
                a.replace("Instance not found", "Not your instance");
            }
        }),
        "get of another user's instance is 404, like that of none",
    ),
    (
        "`created_at` of a container is ISO",
        Text("Z\"", "\""),
        "`created_at` of a container is ISO 8601, UTC, with milliseconds",
    ),
    (
        "create answers 201",
        By(|_, a| {
            if a.status == 201 {
                a.replace("\"lan_ipv4\":\"10.", "\"lan_ipv4\":\"11.");
            }
        }),
        "create answers 201 with the instance, which get and list then show",
    ),
    (
        "`vcpu_cost_hourly_usd` is an exact",
        Text(
            "\"vcpu_cost_hourly_usd\":0.012",
            "\"vcpu_cost_hourly_usd\":0.012000000000000002",
        ),
        "`vcpu_cost_hourly_usd` is an exact decimal",
    ),
    (
        "the stop result has",
        Text("\"state\":\"shut_off\"", "\"state\":\"exited\""),
        "the stop result has message, uuid and state, which is shut_off",
    ),
    (
        "a stopped container is exited",
        By(|head, a| {
            if head.starts_with("GET ") {
                a.replace("\"state\":\"exited\"", "\"state\":\"running\"");
            }
        }),
        "a stopped container is exited",
    ),
    (
        "create: asking for nearest_available",
        By(|_, a| {
            if a.status == 422 {
                let (before, near) = a.body.split_once("\"nearest_available\":").unwrap();
                a.body = format!(
                    "{before}\"nearest_available\":{}",
                    near.replace("\":", "\":1")
                );
            }
        }),
        "create: asking for nearest_available succeeds",
    ),
    (
        "create: the 422",
        Text("\"bottleneck\":", "\"limits\":"),
        "create: the 422 has message, bottleneck, requested and nearest_available",
    ),
    (
        "ports are 1 to 65535",
        Text("[1,22,8080,65535]", "[22,1,8080,65535]"),
        "ports are 1 to 65535, and listed in ascending order",
    ),
    (
        "all wrong fields are reported",
        Text("\"flavor\"", "\"flavour\""),
        "all wrong fields are reported at once",
    ),
    (
        "of many deletes at once",
        By(|head, a| {
            if head.starts_with("DELETE ") && a.status == 404 {
                a.status = 204;
                a.body.clear();
            }
        }),
        "of many deletes at once exactly one is 204, the others 404",
    ),
    (
        "`mem_used_gib` is a number",
        Text("\"mem_used_gib\":", "\"mem_used_gib\":null,\"was\":"),
        "`mem_used_gib` is a number",
    ),
];

#[test]
fn the_suite_notices_what_is_wrong() {
    let server = OwnServer::start().unwrap();
    let mut unnoticed = Vec::new();
    for (filter, distort, rule) in WRONGS {
        let target = Target {
            base_url: serve(&server.target().base_url, distort).unwrap(),
            ..server.target().clone()
        };
        let report = hold_against(&target, &Options::only(filter), &Default::default()).unwrap();
        let failed = |outcome: &&xtask::conformance::check::Outcome| {
            outcome.name == rule && matches!(outcome.verdict, Verdict::Failed(_))
        };
        if report.outcomes.iter().find(failed).is_none() {
            unnoticed.push(format!("{rule}:\n{}", report.table()));
        }
    }
    assert!(unnoticed.is_empty(), "{}", unnoticed.join("\n"));
    server.finish().unwrap();
}
