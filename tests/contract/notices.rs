//! The conformance suite detects errors: a service that is wrong in one way fails the corresponding
//! rule. (The suite's own test shows that a correct service passes.)

use crate::distorting::Distort::{self, By, Status, Text, Without};
use crate::distorting::serve;
use wharf_conformance::check::Verdict;
use wharf_conformance::{Options, OwnServer, Target, hold_against};

/// The rule to check, the distortion, and the rule that must fail.
const WRONGS: [(&str, Distort, &str); 41] = [
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
    (
        "without a Host header",
        By(|head, a| {
            if a.status == 400 && head.starts_with("GET /readyz") {
                a.status = 200;
            }
        }),
        "a request without a Host header is 400, on every endpoint",
    ),
    (
        "two Host headers",
        Text("\"detail\":", "\"error\":"),
        "a request with two Host headers is 400, on every endpoint",
    ),
    (
        "chunks are broken",
        Status(400, 422),
        "a body whose chunks are broken is 400, on every endpoint",
    ),
    (
        "content type is looked at before the size",
        Status(415, 413),
        "content type is looked at before the size, size before the instance",
    ),
    (
        "create: the fields are looked at before",
        Status(400, 422),
        "create: the fields are looked at before the capacity",
    ),
    (
        "the state before the capacity",
        By(|_, a| {
            if a.body.contains("it must be running or exited") {
                a.status = 422;
            }
        }),
        "update: the fields are looked at before the state, the state before the capacity",
    ),
    (
        "all wrong fields of an update",
        Text("\"mem_gib\":[", "\"ram\":["),
        "all wrong fields of an update are reported at once",
    ),
    (
        "update answers 502",
        Status(502, 400),
        "update answers 502 when the host cannot be reached, and nothing changes",
    ),
    (
        "restart answers 502",
        Status(502, 200),
        "restart answers 502 when the host cannot start the instance, which stays stopped",
    ),
    (
        "a missing slash is 308 with",
        Text("\"detail\":", "\"message\":"),
        "a missing slash is 308 with a text under `detail`, and nothing else",
    ),
    (
        "another method is 405",
        Text("\"detail\":", "\"code\":405,\"detail\":"),
        "another method is 405 with a text under `detail`, and nothing else",
    ),
    (
        "without the slash is 308",
        Without("location"),
        "GET /api/instance without the slash is 308 to the path with it",
    ),
    (
        "other methods on /api/instance/ are",
        Without("allow"),
        "other methods on /api/instance/ are 405 with Allow",
    ),
    (
        "a 404 is the same",
        By(|head, a| {
            if head.contains("/stats/") {
                a.replace("Instance", "Container");
            }
        }),
        "a 404 is the same for every action and says nothing of the path",
    ),
    (
        "while the stop still runs",
        By(|head, a| {
            if head.contains("/restart/") {
                a.status = 400;
            }
        }),
        "a restart while the stop still runs is legal, and starts the instance after it",
    ),
    (
        "opened while a VM is provisioning",
        Text("[22,9090]", "[22]"),
        "ports that are opened while a VM is provisioning are open when it runs",
    ),
    (
        "ports or addresses that are used up",
        Text("\"public_ipv4\":0", "\"public_ipv4\":1"),
        "ports or addresses that are used up are 422, and come back with a deletion",
    ),
    (
        "no two instances have the same",
        By(|_, a| {
            if a.body.contains("\"webapp_url\":\"") {
                let (before, rest) = a.body.split_once("\"webapp_url\":\"").unwrap();
                let (_, after) = rest.split_once('"').unwrap();
                a.body = format!("{before}\"webapp_url\":\"http://apps\"{after}");
            }
        }),
        "no two instances have the same `webapp_url`",
    ),
    (
        "gets a GPU again",
        By(|head, a| {
            if head.contains("/restart/") && a.status == 422 {
                a.replace("n_gpus", "gpus");
            }
        }),
        "a stopped instance gets a GPU again, or a 422 while there is none for it",
    ),
    (
        "of kind RSA with 768",
        By(|head, a| {
            if head.starts_with("POST") && a.status == 400 {
                a.status = 201;
            }
        }),
        "`public_key` of kind RSA with 768 bits is refused",
    ),
    (
        "of kind ECDSA on a security key",
        Status(201, 400),
        "`public_key` of kind ECDSA on a security key is accepted",
    ),
];

/// Number of servers, which share the list: most of the time is spent waiting for instances.
const SERVERS: usize = 6;
/// This rule fails only by a timeout: the distortion hides the state that it waits for.
const BY_WAITING: &str = "a stopped container is exited";
/// The deadline of that rule, in seconds. All other rules use the suite's own deadline, so that a
/// slow machine cannot look like a detected error.
const DEADLINE: u64 = 15;

#[test]
fn the_suite_detects_every_error() {
    let undetected: Vec<_> = std::thread::scope(|scope| {
        let parts = WRONGS.chunks(WRONGS.len().div_ceil(SERVERS));
        let threads: Vec<_> = parts.map(|part| scope.spawn(|| undetected(part))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        let broke = |_| vec!["a thread panicked".to_owned()];
        joined.flat_map(|part| part.unwrap_or_else(broke)).collect()
    });
    assert!(undetected.is_empty(), "{}", undetected.join("\n"));
}

fn undetected(wrongs: &[(&str, Distort, &str)]) -> Vec<String> {
    let server = OwnServer::start().unwrap();
    let mut undetected = Vec::new();
    for (filter, distort, rule) in wrongs {
        let target = Target {
            base_url: serve(&server.target().base_url, *distort).unwrap(),
            ..server.target().clone()
        };
        let options = match *rule {
            BY_WAITING => Options::only(filter).within_seconds(DEADLINE),
            _ => Options::only(filter),
        };
        let report = hold_against(&target, &options, &Default::default()).unwrap();
        let failed = |outcome: &&wharf_conformance::check::Outcome| {
            outcome.name == *rule && matches!(outcome.verdict, Verdict::Failed(_))
        };
        if report.outcomes.iter().find(failed).is_none() {
            undetected.push(format!("{rule}:\n{}", report.table()));
        }
    }
    if let Err(error) = server.finish() {
        undetected.push(format!("{error:#}"));
    }
    undetected
}
