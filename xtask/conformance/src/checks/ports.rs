//! Sections 4.8 and 4.9.

use crate::check::{Check, decision, skip, spec};
use crate::client::below;
use crate::context::{Context, same, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec(
            "4.8",
            "the add-port result has message, uuid and all open ports",
            |c| {
                let vm = c.running("vm")?;
                let result = change(c, &vm, "add", 8080)?;
                ensure!(result["message"].is_string(), "no `message`: {result}");
                same(&result, "uuid", &vm["uuid"])?;
                open(&result, &[22, 8080])?;
                let got = c.me().instance(uuid(&vm)?)?.expect(200)?;
                open(&got, &[22, 8080])
            },
        ),
        spec("4.9", "remove-port closes a port", |c| {
            let vm = c.running("vm")?;
            change(c, &vm, "add", 443)?;
            change(c, &vm, "remove", 443)?;
            let got = c.me().instance(uuid(&vm)?)?.expect(200)?;
            open(&got, &[22])
        }),
        decision(
            "4.9",
            "the remove-port result is like that of add-port",
            |c| {
                let vm = c.running("vm")?;
                change(c, &vm, "add", 443)?;
                let result = change(c, &vm, "remove", 443)?;
                ensure!(result["message"].is_string(), "no `message`: {result}");
                same(&result, "uuid", &vm["uuid"])?;
                open(&result, &[22])
            },
        ),
        spec("4.9", "port 22 cannot be removed", |c| {
            let vm = c.sample("vm")?;
            let answer = c.me().port(uuid(vm)?, "remove-port", &json!(22))?;
            ensure!(answer.status >= 400, "{answer}");
            let got = c.me().instance(uuid(vm)?)?.expect(200)?;
            open(&got, &[22])
        }),
        decision("4.9", "removing port 22 is 400 on `port`", |c| {
            let vm = c.sample("vm")?;
            c.me()
                .port(uuid(vm)?, "remove-port", &json!(22))?
                .refuses("port")
        }),
        decision(
            "4.8",
            "opening an open port and closing a closed one change nothing",
            |c| {
                let vm = c.running("vm")?;
                for _ in 0..2 {
                    open(&change(c, &vm, "add", 80)?, &[22, 80])?;
                }
                open(&change(c, &vm, "add", 22)?, &[22, 80])?;
                for _ in 0..2 {
                    open(&change(c, &vm, "remove", 80)?, &[22])?;
                }
                Ok(())
            },
        ),
        decision(
            "4.8",
            "ports are 1 to 65535, and listed in ascending order",
            |c| {
                let vm = c.running("vm")?;
                for port in [65535, 1, 8080] {
                    change(c, &vm, "add", port)?;
                }
                let got = c.me().instance(uuid(&vm)?)?.expect(200)?;
                open(&got, &[1, 22, 8080, 65535])
            },
        ),
        decision(
            "4.8",
            "ports can be changed while a VM is not running, and are kept over a restart",
            |c| {
                let vm = c.stopped("vm")?;
                change(c, &vm, "add", 80)?;
                change(c, &vm, "add", 81)?;
                open(&change(c, &vm, "remove", 80)?, &[22, 81])?;
                c.me().act(uuid(&vm)?, "restart")?.is(200)?;
                open(&c.wait(uuid(&vm)?, "running")?, &[22, 81])
            },
        ),
        decision(
            "4.8",
            "ports that are opened while a VM is provisioning are open when it runs",
            while_provisioning,
        ),
        decision("4.8", "at most 64 ports are open", |c| {
            // While it is stopped nothing waits for the node.
            let vm = c.stopped("vm")?;
            for port in 1000..1063 {
                change(c, &vm, "add", port)?;
            }
            let one_more = c.me().port(uuid(&vm)?, "add-port", &json!(2000))?;
            one_more.refuses("port")?;
            change(c, &vm, "add", 1000)?;
            change(c, &vm, "remove", 1000)?;
            change(c, &vm, "add", 2000).map(drop)
        }),
    ];
    for (section, action) in [("4.8", "add-port"), ("4.9", "remove-port")] {
        checks.extend([
            decision(
                section,
                format!("{action} on a container is 400"),
                move |c| {
                    let container = c.sample("container")?;
                    c.me().port(uuid(container)?, action, &json!(80))?.is(400)
                },
            ),
            decision(
                section,
                format!("{action} on what does not exist is 404"),
                move |c| c.me().port(&c.name(), action, &json!(80))?.is(404),
            ),
            decision(
                section,
                format!("{action} wants `port`, and nothing else"),
                move |c| {
                    let path = below(uuid(c.sample("vm")?)?, action);
                    c.me().post(&path, &json!({}))?.refuses("port")?;
                    let answer = c
                        .me()
                        .post(&path, &json!({ "port": 80, "protocol": "udp" }))?;
                    answer.refuses("protocol")
                },
            ),
        ]);
        for wrong in [
            json!(0),
            json!(65536),
            json!(-1),
            json!("80"),
            json!(80.5),
            json!(true),
            Value::Null,
        ] {
            checks.push(decision(
                section,
                format!("{action} refuses port {wrong}"),
                move |c| {
                    c.me()
                        .port(uuid(c.sample("vm")?)?, action, &wrong)?
                        .refuses("port")
                },
            ));
        }
    }
    checks
}

/// It may become running just before it is asked.
fn while_provisioning(c: &Context<'_>) -> Result<()> {
    const TRIES: usize = 5;
    c.sample("vm")?;
    for _ in 0..TRIES {
        let vm = c.create(&c.small("vm"))?;
        open(&change(c, &vm, "add", 8080)?, &[22, 8080])?;
        open(&change(c, &vm, "add", 9090)?, &[22, 8080, 9090])?;
        open(&change(c, &vm, "remove", 8080)?, &[22, 9090])?;
        let now = c.me().instance(uuid(&vm)?)?.expect(200)?;
        open(&c.wait(uuid(&vm)?, "running")?, &[22, 9090])?;
        if now["state"] == "provisioning" {
            return Ok(());
        }
    }
    skip("it was running before it could be asked")
}

fn change(c: &Context<'_>, vm: &Value, action: &str, port: u16) -> Result<Value> {
    let path = format!("{action}-port");
    c.me().port(uuid(vm)?, &path, &json!(port))?.expect(200)
}

fn open(object: &Value, ports: &[u16]) -> Result<()> {
    same(object, "wan_ports", &json!(ports))
}
