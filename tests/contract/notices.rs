//! The conformance suite is worth something only if it notices: the same service, wrong in one way
//! at a time, fails the rule that says so. (That it passes when it is right is the suite's own test.)

use crate::distorting::{Answer, Distort, serve};
use xtask::conformance::check::Verdict;
use xtask::conformance::{Options, OwnServer, Target, hold_against};

fn replace(answer: &mut Answer, from: &str, to: &str) {
    answer.body = answer.body.replace(from, to);
}

/// What to check, what is wrong, and the rule that fails for it.
const WRONGS: [(&str, Distort, &str); 20] = [
    (
        "get of what does not exist",
        |_, a| a.headers.retain(|(name, _)| name != "x-request-id"),
        "every answer carries X-Request-Id",
    ),
    (
        "get of what does not exist",
        |_, a| a.headers.retain(|(name, _)| name != "content-type"),
        "every body is JSON, and says so in Content-Type",
    ),
    (
        "get of what does not exist",
        |_, a| {
            if a.status == 404 {
                a.status = 500;
            }
        },
        "no answer is a 5xx but 502 for a host out of reach",
    ),
    (
        "get of what does not exist",
        |head, a| {
            if a.status == 404 {
                let key = head.split("Bearer ").nth(1).unwrap_or("");
                let key = key.lines().next().unwrap_or("");
                replace(a, "not found", &format!("not found for {key}"));
            }
        },
        "no answer shows an API key or a secret given at creation",
    ),
    (
        "`uuid` of a container",
        |_, a| replace(a, "\"wan_ports\":", "\"extra\":1,\"wan_ports\":"),
        "every answer agrees with the service's OpenAPI document",
    ),
    (
        "`webapp_url` of a container",
        |_, a| replace(a, "\"webapp_url\":null,", ""),
        "`webapp_url` of a container is a string or null in get and list",
    ),
    (
        "list without a valid key",
        |_, a| {
            if a.status == 401 {
                a.status = 403;
            }
        },
        "list without a valid key is 401",
    ),
    (
        "list without a valid key",
        |_, a| a.headers.retain(|(name, _)| name != "www-authenticate"),
        "every 401 carries WWW-Authenticate: Bearer",
    ),
    (
        "get of another user's",
        |head, a| {
            if a.status == 404 && !head.contains("/conf-") {
                replace(a, "Instance not found", "Not your instance");
            }
        },
        "get of another user's instance is 404, like that of none",
    ),
    (
        "`created_at` of a container is ISO",
        |_, a| replace(a, "Z\"", "\""),
        "`created_at` of a container is ISO 8601, UTC, with milliseconds",
    ),
    (
        "create answers 201",
        |_, a| {
            if a.status == 201 {
                replace(a, "\"lan_ipv4\":\"10.", "\"lan_ipv4\":\"11.");
            }
        },
        "create answers 201 with the instance, which get and list then show",
    ),
    (
        "`vcpu_cost_hourly_usd` is an exact",
        |_, a| {
            replace(
                a,
                "\"vcpu_cost_hourly_usd\":0.012",
                "\"vcpu_cost_hourly_usd\":0.012000000000000002",
            )
        },
        "`vcpu_cost_hourly_usd` is an exact decimal",
    ),
    (
        "the stop result has",
        |_, a| replace(a, "\"state\":\"shut_off\"", "\"state\":\"exited\""),
        "the stop result has message, uuid and state, which is shut_off",
    ),
    (
        "a stopped container is exited",
        |head, a| {
            if head.starts_with("GET ") {
                replace(a, "\"state\":\"exited\"", "\"state\":\"running\"");
            }
        },
        "a stopped container is exited",
    ),
    (
        "create: asking for nearest_available",
        |_, a| {
            if a.status == 422 {
                let (before, near) = a.body.split_once("\"nearest_available\":").unwrap();
                a.body = format!(
                    "{before}\"nearest_available\":{}",
                    near.replace("\":", "\":1")
                );
            }
        },
        "create: asking for nearest_available succeeds",
    ),
    (
        "create: the 422",
        |_, a| replace(a, "\"bottleneck\":", "\"limits\":"),
        "create: the 422 has message, bottleneck, requested and nearest_available",
    ),
    (
        "ports are 1 to 65535",
        |_, a| replace(a, "[1,22,8080,65535]", "[22,1,8080,65535]"),
        "ports are 1 to 65535, and listed in ascending order",
    ),
    (
        "all wrong fields are reported",
        |_, a| replace(a, "\"flavor\"", "\"flavour\""),
        "all wrong fields are reported at once",
    ),
    (
        "of many deletes at once",
        |head, a| {
            if head.starts_with("DELETE ") && a.status == 404 {
                a.status = 204;
                a.body.clear();
            }
        },
        "of many deletes at once exactly one is 204, the others 404",
    ),
    (
        "`mem_used_gib` is a number",
        |_, a| replace(a, "\"mem_used_gib\":", "\"mem_used_gib\":null,\"was\":"),
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
