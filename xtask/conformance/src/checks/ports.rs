//! Sections 4.8 and 4.9: the ports of VMs.

use crate::check::{Check, decision, spec};
use crate::client::action_path;
use crate::context::{Context, expect_field, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec(
            "4.8",
            "the result of add-port has message, uuid and all open ports",
            |c| {
                let vm = c.running("vm")?;
                let result = change(c, &vm, "add", 8080)?;
                ensure!(
                    result["message"].is_string(),
                    "`message` is missing: {result}"
                );
                expect_field(&result, "uuid", &vm["uuid"])?;
                expect_open(&result, &[22, 8080])?;
                let got = c.me().instance(uuid(&vm)?)?.expect(200)?;
                expect_open(&got, &[22, 8080])
            },
        ),
        spec("4.9", "remove-port closes a port", |c| {
            let vm = c.running("vm")?;
            change(c, &vm, "add", 443)?;
            change(c, &vm, "remove", 443)?;
            let got = c.me().instance(uuid(&vm)?)?.expect(200)?;
            expect_open(&got, &[22])
        }),
        decision(
            "4.9",
            "the result of remove-port has message, uuid and all open ports",
            |c| {
                let vm = c.running("vm")?;
                change(c, &vm, "add", 443)?;
                let result = change(c, &vm, "remove", 443)?;
                ensure!(
                    result["message"].is_string(),
                    "`message` is missing: {result}"
                );
                expect_field(&result, "uuid", &vm["uuid"])?;
                expect_open(&result, &[22])
            },
        ),
        spec("4.9", "remove-port cannot close port 22", |c| {
            let vm = c.sample("vm")?;
            let response = c.me().port(uuid(vm)?, "remove-port", &json!(22))?;
            ensure!(response.status >= 400, "{response}");
            let got = c.me().instance(uuid(vm)?)?.expect(200)?;
            expect_open(&got, &[22])
        }),
        decision("4.9", "remove-port refuses port 22 on `port`", |c| {
            let vm = c.sample("vm")?;
            c.me()
                .port(uuid(vm)?, "remove-port", &json!(22))?
                .refuses("port")
        }),
        decision(
            "4.8",
            "add-port of an open port and remove-port of a closed port change nothing",
            |c| {
                let vm = c.running("vm")?;
                for _ in 0..2 {
                    expect_open(&change(c, &vm, "add", 80)?, &[22, 80])?;
                }
                expect_open(&change(c, &vm, "add", 22)?, &[22, 80])?;
                for _ in 0..2 {
                    expect_open(&change(c, &vm, "remove", 80)?, &[22])?;
                }
                Ok(())
            },
        ),
        decision(
            "4.8",
            "ports range from 1 to 65535 and are listed in ascending order",
            |c| {
                let vm = c.running("vm")?;
                for port in [65535, 1, 8080] {
                    change(c, &vm, "add", port)?;
                }
                let got = c.me().instance(uuid(&vm)?)?.expect(200)?;
                expect_open(&got, &[1, 22, 8080, 65535])
            },
        ),
        decision(
            "4.8",
            "ports of a stopped VM can be changed and survive a restart",
            |c| {
                let vm = c.stopped("vm")?;
                change(c, &vm, "add", 80)?;
                change(c, &vm, "add", 81)?;
                expect_open(&change(c, &vm, "remove", 80)?, &[22, 81])?;
                c.me().act(uuid(&vm)?, "restart")?.is(200)?;
                expect_open(&c.wait(uuid(&vm)?, "running")?, &[22, 81])
            },
        ),
        decision(
            "4.8",
            "ports opened during provisioning are open once the VM runs",
            open_during_provisioning,
        ),
        decision("4.8", "add-port refuses a 65th port", |c| {
            // Port changes of a stopped VM do not wait for the node.
            let vm = c.stopped("vm")?;
            for port in 1000..1063 {
                change(c, &vm, "add", port)?;
            }
            let too_many = c.me().port(uuid(&vm)?, "add-port", &json!(2000))?;
            too_many.refuses("port")?;
            change(c, &vm, "add", 1000)?;
            change(c, &vm, "remove", 1000)?;
            change(c, &vm, "add", 2000).map(drop)
        }),
    ];
    for (section, action) in [("4.8", "add-port"), ("4.9", "remove-port")] {
        checks.extend([
            decision(
                section,
                format!("{action} returns 400 for a container"),
                move |c| {
                    let container = c.sample("container")?;
                    c.me().port(uuid(container)?, action, &json!(80))?.is(400)
                },
            ),
            decision(
                section,
                format!("{action} returns 404 for a missing instance"),
                move |c| c.me().port(&c.name(), action, &json!(80))?.is(404),
            ),
            decision(
                section,
                format!("{action} requires `port` and refuses other fields"),
                move |c| {
                    let path = action_path(uuid(c.sample("vm")?)?, action);
                    c.me().post(&path, &json!({}))?.refuses("port")?;
                    let response = c
                        .me()
                        .post(&path, &json!({ "port": 80, "protocol": "udp" }))?;
                    response.refuses("protocol")
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

fn open_during_provisioning(c: &Context<'_>) -> Result<()> {
    let (vm, _) = c.during_provisioning("vm", |id| {
        let port = |action, port: u16| c.me().port(id, action, &json!(port));
        expect_open(&port("add-port", 8080)?.expect(200)?, &[22, 8080])?;
        expect_open(&port("add-port", 9090)?.expect(200)?, &[22, 8080, 9090])?;
        let removed = port("remove-port", 8080)?;
        removed.is(200)?;
        expect_open(&removed.body, &[22, 9090])?;
        Ok(removed)
    })?;
    expect_open(&c.wait(uuid(&vm)?, "running")?, &[22, 9090])
}

fn change(c: &Context<'_>, vm: &Value, action: &str, port: u16) -> Result<Value> {
    let path = format!("{action}-port");
    c.me().port(uuid(vm)?, &path, &json!(port))?.expect(200)
}

fn expect_open(object: &Value, ports: &[u16]) -> Result<()> {
    expect_field(object, "wan_ports", &json!(ports))
}
