//! The conformance suite detects errors: a service with one error fails the corresponding rule.
//! (`conformance.rs` shows that a correct service passes.)

use crate::distorting::Distort::{self, By, Status, Text, Without};
use crate::distorting::serve;
use wharf_conformance::check::Verdict;
use wharf_conformance::{Options, OwnServer, Target, check_service};

/// The filter of the rules to check, the distortion, and the rule that must fail.
const DISTORTIONS: [(&str, Distort, &str); 51] = [
    (
        "a volume is shared with a user",
        Text("\"shared\":true", "\"shared\":false"),
        "a volume is shared with a user, who only reads it",
    ),
    (
        "an instance has its volume",
        By(|head, a| {
            if a.status == 400 && head.starts_with("DELETE /api/volume/") {
                a.status = 204;
                a.body.clear();
            }
        }),
        "an instance has its volume until it is deleted",
    ),
    (
        "an instance is restored from its snapshot",
        By(|head, a| {
            if a.status == 400 && head.contains("/restore/ ") {
                a.status = 200;
            }
        }),
        "an instance is restored from its snapshot while it is stopped",
    ),
    (
        "snapshots are deleted with their instance",
        By(|head, a| {
            if a.status == 404 && head.starts_with("GET /api/snapshot/") {
                a.status = 200;
            }
        }),
        "snapshots are deleted with their instance",
    ),
    (
        "show returns 404 for a missing instance",
        Without("x-request-id"),
        "every response carries X-Request-Id",
    ),
    (
        "show returns 404 for a missing instance",
        Without("content-type"),
        "every response body is JSON with Content-Type: application/json",
    ),
    (
        "show returns 404 for a missing instance",
        Status(404, 500),
        "no response is a 5xx except 502",
    ),
    (
        "show returns 404 for a missing instance",
        By(|head, a| {
            if a.status == 404 {
                let key = head.split("Bearer ").nth(1).unwrap_or("");
                let key = key.lines().next().unwrap_or("");
                a.replace("not found", &format!("not found for {key}"));
            }
        }),
        "no response contains an API key or a secret of a create request",
    ),
    (
        "`uuid` of a container",
        Text("\"wan_ports\":", "\"extra\":1,\"wan_ports\":"),
        "every response agrees with the service's OpenAPI document",
    ),
    (
        "`webapp_url` of a container",
        Text("\"webapp_url\":null,", ""),
        "`webapp_url` of a container is a string or null in show and list",
    ),
    (
        "list returns 401 without a valid key",
        Status(401, 403),
        "list returns 401 without a valid key",
    ),
    (
        "list returns 401 without a valid key",
        Without("www-authenticate"),
        "every 401 carries WWW-Authenticate: Bearer",
    ),
    (
        "show returns 404 for another user's",
        By(|head, a| {
            if a.status == 404 && !head.contains("/conf-") {
                a.replace("Instance not found", "Not your instance");
            }
        }),
        "show returns 404 for another user's instance, as for a missing instance",
    ),
    (
        "`created_at` of a container is an ISO",
        Text("Z\"", "\""),
        "`created_at` of a container is an ISO 8601 time in UTC with milliseconds",
    ),
    (
        "create returns 201 with",
        By(|_, a| {
            if a.status == 201 {
                a.replace("\"lan_ipv4\":\"10.", "\"lan_ipv4\":\"11.");
            }
        }),
        "create returns 201 with an instance that show and list return too",
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
        "the result of stop has",
        Text("\"state\":\"shut_off\"", "\"state\":\"exited\""),
        "the result of stop has message, uuid and the state shut_off",
    ),
    (
        "a stopped container has the state exited",
        By(|head, a| {
            if head.starts_with("GET ") {
                a.replace("\"state\":\"exited\"", "\"state\":\"running\"");
            }
        }),
        "a stopped container has the state exited",
    ),
    (
        "create succeeds with the values",
        By(|_, a| {
            if a.status == 422 {
                let (before, near) = a.body.split_once("\"nearest_available\":").unwrap();
                a.body = format!(
                    "{before}\"nearest_available\":{}",
                    near.replace("\":", "\":1")
                );
            }
        }),
        "create succeeds with the values of nearest_available",
    ),
    (
        "the 422 of create",
        Text("\"bottleneck\":", "\"limits\":"),
        "the 422 of create has message, bottleneck, requested and nearest_available",
    ),
    (
        "ports range from 1 to 65535",
        Text("[1,22,8080,65535]", "[22,1,8080,65535]"),
        "ports range from 1 to 65535 and are listed in ascending order",
    ),
    (
        "create reports all wrong fields",
        Text("\"flavor\"", "\"flavour\""),
        "create reports all wrong fields together",
    ),
    (
        "several concurrent deletes",
        By(|head, a| {
            if head.starts_with("DELETE ") && a.status == 404 {
                a.status = 204;
                a.body.clear();
            }
        }),
        "exactly one of several concurrent deletes returns 204, the others 404",
    ),
    (
        "`mem_used_gib` of stats is a number",
        Text("\"mem_used_gib\":", "\"mem_used_gib\":null,\"was\":"),
        "`mem_used_gib` of stats is a number",
    ),
    (
        "without a Host header",
        By(|head, a| {
            if a.status == 400 && head.starts_with("GET /readyz") {
                a.status = 200;
            }
        }),
        "a request without a Host header is refused with 400 on every endpoint",
    ),
    (
        "two Host headers",
        Text("\"detail\":", "\"error\":"),
        "a request with two Host headers is refused with 400 on every endpoint",
    ),
    (
        "malformed chunked body",
        Status(400, 422),
        "a malformed chunked body is refused with 400 on every endpoint",
    ),
    (
        "Content-Type is checked before the size",
        Status(415, 413),
        "Content-Type is checked before the size, and the size before the instance",
    ),
    (
        "create checks fields before",
        Status(400, 422),
        "create checks fields before capacity",
    ),
    (
        "the state before capacity",
        By(|_, a| {
            if a.body.contains("it must be running or exited") {
                a.status = 422;
            }
        }),
        "update checks fields before the state, and the state before capacity",
    ),
    (
        "update reports all wrong fields",
        Text("\"mem_gib\":[", "\"ram\":["),
        "update reports all wrong fields together",
    ),
    (
        "a resize returns 502",
        Status(502, 400),
        "a resize returns 502 and changes nothing while the node cannot be reached",
    ),
    (
        "restart returns 502",
        Status(502, 200),
        "restart returns 502 if the node cannot start the instance, which stays stopped",
    ),
    (
        "a missing slash results",
        Text("\"detail\":", "\"message\":"),
        "a missing slash results in 308 with `detail` only",
    ),
    (
        "an unsupported method results",
        Text("\"detail\":", "\"code\":405,\"detail\":"),
        "an unsupported method results in 405 with `detail` only",
    ),
    (
        "GET /api/instance returns 308",
        Without("location"),
        "GET /api/instance returns 308 to the path with a final slash",
    ),
    (
        "unsupported methods on /api/instance/ return",
        Without("allow"),
        "unsupported methods on /api/instance/ return 405 with Allow",
    ),
    (
        "the body of a 404",
        By(|head, a| {
            if head.contains("/stats/") {
                a.replace("Instance", "Container");
            }
        }),
        "the body of a 404 depends on neither action nor path",
    ),
    (
        "a restart during a stop",
        By(|head, a| {
            if head.contains("/restart/") {
                a.status = 400;
            }
        }),
        "a restart during a stop succeeds, and the instance runs after the stop",
    ),
    (
        "opened during provisioning",
        Text("[22,9090]", "[22]"),
        "ports opened during provisioning are open once the VM runs",
    ),
    (
        "exhausted ports or addresses",
        Text("\"public_ipv4\":0", "\"public_ipv4\":1"),
        "exhausted ports or addresses are a 422 until an instance is deleted",
    ),
    (
        "`webapp_url` is unique",
        By(|_, a| {
            if a.body.contains("\"webapp_url\":\"") {
                let (before, rest) = a.body.split_once("\"webapp_url\":\"").unwrap();
                let (_, after) = rest.split_once('"').unwrap();
                a.body = format!("{before}\"webapp_url\":\"http://apps\"{after}");
            }
        }),
        "`webapp_url` is unique to an instance",
    ),
    (
        "attaches a GPU again",
        By(|head, a| {
            if head.contains("/restart/") && a.status == 422 {
                a.replace("n_gpus", "gpus");
            }
        }),
        "restart attaches a GPU again, or returns 422 while no GPU is free",
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
    (
        "pages follow each other",
        Without("link"),
        "pages follow each other to the end of the list",
    ),
    (
        "suggests the field",
        Text("`n_vcpus`", "n_vcpus"),
        "create refuses an unknown field, and suggests the field of a similar name",
    ),
    (
        "If-Match is checked after",
        Status(412, 400),
        "If-Match is checked after instance and fields, and before the state",
    ),
    (
        "does not keep its Idempotency-Key",
        Status(201, 409),
        "a refused create does not keep its Idempotency-Key",
    ),
    (
        "the field errors and the shortage",
        By(|head, a| {
            if head.contains("/estimate/") {
                a.replace("unknown field", "odd field");
            }
        }),
        "an estimate has the field errors and the shortage of create",
    ),
    (
        "wrong names and lines of SSH keys",
        By(|head, a| {
            if head.contains("/ssh-key/") && a.status == 400 {
                a.replace("\"public_key\":[", "\"key\":[");
            }
        }),
        "wrong names and lines of SSH keys are refused",
    ),
];

/// Number of concurrent servers, each with a part of the list. Most of the time is spent waiting.
const SERVERS: usize = 6;
/// This rule fails only at its deadline, because the distortion hides the expected state.
const FAILS_AT_DEADLINE: &str = "a stopped container has the state exited";
/// The deadline of that rule, in seconds. All other rules keep the suite's deadline, so that slowness
/// does not count as a detected error.
const DEADLINE: u64 = 15;

#[test]
fn the_suite_detects_every_error() {
    let undetected: Vec<_> = std::thread::scope(|scope| {
        let parts = DISTORTIONS.chunks(DISTORTIONS.len().div_ceil(SERVERS));
        let threads: Vec<_> = parts.map(|part| scope.spawn(|| undetected(part))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        let panicked = |_| vec!["a thread panicked".to_owned()];
        joined
            .flat_map(|part| part.unwrap_or_else(panicked))
            .collect()
    });
    assert!(undetected.is_empty(), "{}", undetected.join("\n"));
}

fn undetected(distortions: &[(&str, Distort, &str)]) -> Vec<String> {
    let server = OwnServer::start().unwrap();
    let mut undetected = Vec::new();
    for (filter, distort, rule) in distortions {
        let target = Target {
            base_url: serve(&server.target().base_url, *distort).unwrap(),
            ..server.target().clone()
        };
        let options = match *rule {
            FAILS_AT_DEADLINE => Options::only(filter).within_seconds(DEADLINE),
            _ => Options::only(filter),
        };
        let report = check_service(&target, &options, &Default::default()).unwrap();
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
