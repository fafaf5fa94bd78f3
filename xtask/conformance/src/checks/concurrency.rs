//! Concurrent requests.

use super::conditional;
use crate::check::{Check, decision};
use crate::client::{Response, instance_path};
use crate::context::uuid;
use anyhow::{Result, anyhow, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const REQUESTS: usize = 8;

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "2.2",
            "exactly one of several concurrent creates with one name succeeds",
            |c| {
                let body = c.small("container");
                let responses = concurrently(|_| c.try_create(c.me(), &body))?;
                let created = responses.iter().filter(|a| a.status == 201).count();
                ensure!(created == 1, "{created} requests returned 201");
                for response in responses.iter().filter(|a| a.status != 201) {
                    response.refuses("name")?;
                }
                Ok(())
            },
        ),
        decision(
            "4.3",
            "several concurrent creates with one Idempotency-Key make one instance",
            |c| {
                let (key, body) = (c.name(), c.small("container"));
                let responses = concurrently(|_| conditional::create(c, c.me(), &key, &body))?;
                let made = responses.iter().filter(|a| a.status == 201);
                let bodies: BTreeSet<_> = made.map(|a| a.body.to_string()).collect();
                ensure!(bodies.len() == 1, "{} different answers", bodies.len());
                let odd = responses.iter().find(|a| ![201, 409].contains(&a.status));
                ensure!(
                    odd.is_none(),
                    "{}",
                    odd.map_or_else(String::new, Response::to_string)
                );
                Ok(())
            },
        ),
        decision(
            "4",
            "exactly one of several concurrent changes with one If-Match succeeds, the others are 412",
            |c| {
                let created = c.running("container")?;
                let path = instance_path(uuid(&created)?);
                let tag = conditional::etag(&c.me().get(&path)?)?;
                let responses = concurrently(|_| {
                    let name = json!({ "name": c.name() });
                    conditional::with(c.me(), "PATCH", &path, ("If-Match", &tag), &name)
                })?;
                expect_count(&responses, 200, 1)?;
                expect_count(&responses, 412, REQUESTS - 1)
            },
        ),
        decision(
            "4.4",
            "exactly one of several concurrent renames to one name succeeds",
            |c| {
                let mut created = Vec::new();
                for _ in 0..4 {
                    created.push(c.create(&c.small("container"))?);
                }
                let body = json!({ "name": c.name() });
                let responses = concurrently(|n| {
                    let instance = created.get(n % created.len()).unwrap_or(&Value::Null);
                    c.me().patch(uuid(instance)?, &body)
                })?;
                // A repeated rename of the instance with the name succeeds too.
                let winners: BTreeSet<_> = responses
                    .iter()
                    .filter(|a| a.status == 200)
                    .map(|a| a.body["uuid"].to_string())
                    .collect();
                ensure!(
                    winners.len() == 1,
                    "{} instances have the name",
                    winners.len()
                );
                for response in responses.iter().filter(|a| a.status != 200) {
                    response.refuses("name")?;
                }
                Ok(())
            },
        ),
        decision(
            "4.7",
            "exactly one of several concurrent deletes returns 204, the others 404",
            |c| {
                let created = c.running("container")?;
                let id = uuid(&created)?;
                let responses = concurrently(|_| c.me().delete(id))?;
                expect_count(&responses, 204, 1)?;
                expect_count(&responses, 404, REQUESTS - 1)
            },
        ),
        decision(
            "4.5",
            "at least one of several concurrent stops returns 200, the others 400",
            |c| {
                let running = c.running("container")?;
                let id = uuid(&running)?;
                let responses = concurrently(|_| c.me().act(id, "stop"))?;
                let stopped = responses.iter().filter(|a| a.status == 200).count();
                ensure!(stopped >= 1, "no response is 200");
                expect_count(&responses, 400, REQUESTS - stopped)?;
                c.wait(id, "exited").map(drop)
            },
        ),
        decision(
            "4.6",
            "at least one of several concurrent restarts returns 200, the others 400",
            |c| {
                let stopped = c.stopped("container")?;
                let id = uuid(&stopped)?;
                let responses = concurrently(|_| c.me().act(id, "restart"))?;
                let started = responses.iter().filter(|a| a.status == 200).count();
                ensure!(started >= 1, "no response is 200");
                expect_count(&responses, 400, REQUESTS - started)?;
                c.wait(id, "running").map(drop)
            },
        ),
        decision(
            "4.8",
            "concurrent add-port requests open all their ports",
            |c| {
                let vm = c.running("vm")?;
                let id = uuid(&vm)?;
                let responses = concurrently(|n| c.me().port(id, "add-port", &json!(9000 + n)))?;
                expect_count(&responses, 200, REQUESTS)?;
                let got = c.me().instance(id)?.expect(200)?;
                let open = got["wan_ports"].as_array().map_or(0, Vec::len);
                ensure!(open == REQUESTS + 1, "{open} ports are open");
                Ok(())
            },
        ),
        decision(
            "4.3",
            "concurrently created instances have distinct UUIDs, names, SSH ports, addresses and passwords",
            |c| {
                let created = concurrently(|_| c.try_create(c.me(), &c.small("container")))?;
                let created: Vec<_> = created.iter().filter(|a| a.status == 201).collect();
                for field in [
                    "uuid",
                    "name",
                    "wan_ssh_port",
                    "lan_ipv4",
                    "original_service_password",
                ] {
                    let values: BTreeSet<_> =
                        created.iter().map(|a| a.body[field].to_string()).collect();
                    ensure!(values.len() == created.len(), "`{field}` is not unique");
                }
                Ok(())
            },
        ),
    ]
}

fn expect_count(responses: &[Response], status: u16, expected: usize) -> Result<()> {
    let found = responses.iter().filter(|a| a.status == status).count();
    let odd = responses.iter().find(|a| a.status != status);
    let odd = odd.map_or_else(String::new, |a| format!("; for example: {a}"));
    ensure!(
        found == expected,
        "{found} of {} responses are {status}, expected {expected}{odd}",
        responses.len()
    );
    Ok(())
}

/// Sends a request from several threads at the same moment.
fn concurrently(send: impl Fn(usize) -> Result<Response> + Sync) -> Result<Vec<Response>> {
    let begin = std::sync::Barrier::new(REQUESTS);
    std::thread::scope(|scope| {
        let (send, begin) = (&send, &begin);
        let threads: Vec<_> = (0..REQUESTS)
            .map(|n| {
                scope.spawn(move || {
                    begin.wait();
                    send(n)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().map_err(|_| anyhow!("a thread panicked"))?)
            .collect()
    })
}
