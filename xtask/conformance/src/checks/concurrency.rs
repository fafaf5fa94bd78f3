//! Many requests at once.

use crate::check::{Check, decision};
use crate::client::Answer;
use crate::context::uuid;
use anyhow::{Result, anyhow, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const AT_ONCE: usize = 8;

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "2.2",
            "of many creates with one name at once exactly one succeeds",
            |c| {
                let body = c.small("container");
                let answers = at_once(|_| c.try_create(c.me(), &body))?;
                let made = answers.iter().filter(|a| a.status == 201).count();
                ensure!(made == 1, "{made} were made");
                for answer in answers.iter().filter(|a| a.status != 201) {
                    answer.refuses("name")?;
                }
                Ok(())
            },
        ),
        decision(
            "4.4",
            "of many renames to one name at once exactly one succeeds",
            |c| {
                let mut made = Vec::new();
                for _ in 0..4 {
                    made.push(c.create(&c.small("container"))?);
                }
                let body = json!({ "name": c.name() });
                let answers = at_once(|n| {
                    let instance = made.get(n % made.len()).unwrap_or(&Value::Null);
                    c.me().patch(uuid(instance)?, &body)
                })?;
                // A repetition on the one that won is no conflict.
                let winners: BTreeSet<_> = answers
                    .iter()
                    .filter(|a| a.status == 200)
                    .map(|a| a.body["uuid"].to_string())
                    .collect();
                ensure!(winners.len() == 1, "{} have the name", winners.len());
                for answer in answers.iter().filter(|a| a.status != 200) {
                    answer.refuses("name")?;
                }
                Ok(())
            },
        ),
        decision(
            "4.7",
            "of many deletes at once exactly one is 204, the others 404",
            |c| {
                let created = c.running("container")?;
                let id = uuid(&created)?;
                let answers = at_once(|_| c.me().delete(id))?;
                count(&answers, 204, 1)?;
                count(&answers, 404, AT_ONCE - 1)
            },
        ),
        decision(
            "4.5",
            "of many stops at once at least one is 200, the others 400",
            |c| {
                let running = c.running("container")?;
                let id = uuid(&running)?;
                let answers = at_once(|_| c.me().act(id, "stop"))?;
                let stopped = answers.iter().filter(|a| a.status == 200).count();
                ensure!(stopped >= 1, "none is 200");
                count(&answers, 400, AT_ONCE - stopped)?;
                c.wait(id, "exited").map(drop)
            },
        ),
        decision(
            "4.6",
            "of many restarts at once at least one is 200, the others 400",
            |c| {
                let stopped = c.stopped("container")?;
                let id = uuid(&stopped)?;
                let answers = at_once(|_| c.me().act(id, "restart"))?;
                let started = answers.iter().filter(|a| a.status == 200).count();
                ensure!(started >= 1, "none is 200");
                count(&answers, 400, AT_ONCE - started)?;
                c.wait(id, "running").map(drop)
            },
        ),
        decision("4.8", "ports that are opened at once are all open", |c| {
            let vm = c.running("vm")?;
            let id = uuid(&vm)?;
            let answers = at_once(|n| c.me().port(id, "add-port", &json!(9000 + n)))?;
            count(&answers, 200, AT_ONCE)?;
            let got = c.me().instance(id)?.expect(200)?;
            let open = got["wan_ports"].as_array().map_or(0, Vec::len);
            ensure!(open == AT_ONCE + 1, "{open} are open");
            Ok(())
        }),
        decision(
            "4.3",
            "instances that are made at once share no UUID, name, SSH port or password",
            |c| {
                let made = at_once(|_| c.try_create(c.me(), &c.small("container")))?;
                let made: Vec<_> = made.iter().filter(|a| a.status == 201).collect();
                for field in ["uuid", "name", "wan_ssh_port", "original_service_password"] {
                    let values: BTreeSet<_> =
                        made.iter().map(|a| a.body[field].to_string()).collect();
                    ensure!(values.len() == made.len(), "`{field}` is shared");
                }
                Ok(())
            },
        ),
    ]
}

fn count(answers: &[Answer], status: u16, expected: usize) -> Result<()> {
    let found = answers.iter().filter(|a| a.status == status).count();
    let odd = answers.iter().find(|a| a.status != status);
    let odd = odd.map_or_else(String::new, |a| format!("; one {a}"));
    ensure!(
        found == expected,
        "{found} of {} are {status}, not {expected}{odd}",
        answers.len()
    );
    Ok(())
}

/// Sends a request from many threads.
fn at_once(ask: impl Fn(usize) -> Result<Answer> + Sync) -> Result<Vec<Answer>> {
    let begin = std::sync::Barrier::new(AT_ONCE);
    std::thread::scope(|scope| {
        let (ask, begin) = (&ask, &begin);
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|n| {
                scope.spawn(move || {
                    begin.wait();
                    ask(n)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().map_err(|_| anyhow!("a thread broke"))?)
            .collect()
    })
}
