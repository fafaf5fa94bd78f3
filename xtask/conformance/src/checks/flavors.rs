//! Section 2.4: flavors, with their SSH and web pages.

use crate::check::{Check, decision, spec};
use crate::context::{Context, expect_field, text};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Name, SSH, web page.
const FLAVORS: [(&str, bool, bool); 8] = [
    ("base", true, false),
    ("datascience", true, false),
    ("marimo", false, true),
    ("datasciencemarimo", false, true),
    ("rserver", false, true),
    ("rgeospatial", false, true),
    ("genomics", true, false),
    ("jupyterlab", false, true),
];

/// A size that suffices for every flavor.
const SIZE: [(&str, u64); 3] = [("n_vcpus", 2), ("mem_gib", 4), ("disk_size_gib", 40)];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for (flavor, ssh, web) in FLAVORS {
        let name = format!("flavor {flavor} is available on containers");
        let rule =
            move |c: &Context<'_>| expect_field(&create(c, flavor)?, "flavor", &json!(flavor));
        // The specification names jupyterlab in 4.3 only.
        checks.push(if flavor == "jupyterlab" {
            decision("2.4", name, rule)
        } else {
            spec("2.4", name, rule)
        });
        if ssh {
            let name = format!("containers of flavor {flavor} have an `ssh_command`");
            checks.push(spec("1", name, move |c| {
                let command = &create(c, flavor)?["ssh_command"];
                ensure!(command.is_string(), "`ssh_command` is {command}");
                Ok(())
            }));
        } else {
            let name = format!("`ssh_command` of flavor {flavor} is null");
            checks.push(decision("1", name, move |c| {
                expect_field(&create(c, flavor)?, "ssh_command", &Value::Null)
            }));
        }
        if web {
            let name =
                format!("`webapp_url` of flavor {flavor} is a URL in the response of create");
            checks.push(decision("2.3", name, move |c| {
                let url = &create(c, flavor)?["webapp_url"];
                let is_url = url.as_str().is_some_and(|u| u.starts_with("http"));
                ensure!(is_url, "`webapp_url` is {url}");
                Ok(())
            }));
        } else {
            let name = format!("`webapp_url` of flavor {flavor} is null");
            checks.push(spec("2.3", name, move |c| {
                expect_field(&create(c, flavor)?, "webapp_url", &Value::Null)
            }));
        }
        if flavor != "base" {
            let name = format!("create refuses flavor {flavor} on a VM");
            checks.push(decision("2.4", name, move |c| {
                c.try_create(c.me(), &body(c, "vm", flavor))?
                    .refuses("flavor")
            }));
        }
    }
    checks.extend([
        decision("2.3", "`webapp_url` is unique to an instance", |c| {
            let (one, two) = (create(c, "marimo")?, create(c, "marimo")?);
            let (one, two) = (text(&one, "webapp_url")?, text(&two, "webapp_url")?);
            ensure!(one != two, "two instances have {one}");
            Ok(())
        }),
        spec("2.4", "flavor base is available on VMs", |c| {
            expect_field(c.sample("vm")?, "flavor", &json!("base"))
        }),
        spec("2.4", "create refuses an unknown flavor", |c| {
            c.try_create(c.me(), &body(c, "container", "no-such-flavor"))?
                .refuses("flavor")
        }),
    ]);
    checks
}

fn body(c: &Context<'_>, kind: &str, flavor: &str) -> Value {
    let mut body = c.small_with(kind, &json!({ "flavor": flavor }));
    for (field, value) in SIZE {
        body[field] = json!(value);
    }
    body
}

fn create(c: &Context<'_>, flavor: &str) -> Result<Value> {
    c.create(&body(c, "container", flavor))
}
