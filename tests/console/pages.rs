//! Every page: without barriers, at every width, in light and dark.

use crate::axe;
use crate::backups::Offsite;
use crate::desk::{Desk, container, title};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;
use wharf_testkit::workspace::wharf_binary;
use wharf_tests::simulated_node;

/// Name of the picture, address, title.
const PAGES: [(&str, &str, &str); 24] = [
    ("list", "/instances", "Instances"),
    ("create", "/instances/new", "Create instance"),
    ("show", "/instances/brave-otter-12", "brave-otter-12"),
    (
        "show-events",
        "/instances/brave-otter-12#events",
        "brave-otter-12",
    ),
    (
        "resize",
        "/instances/brave-otter-12#resize",
        "brave-otter-12",
    ),
    ("ports", "/instances/gate-vm#settings", "gate-vm"),
    (
        "instance-volumes",
        "/instances/brave-otter-12#volumes",
        "brave-otter-12",
    ),
    (
        "instance-snapshots",
        "/instances/brave-otter-12#snapshots",
        "brave-otter-12",
    ),
    (
        "instance-backups",
        "/instances/brave-otter-12#backups",
        "brave-otter-12",
    ),
    ("volumes", "/volumes", "Volumes"),
    ("volume", "/volumes/reference-genome", "reference-genome"),
    ("stopped", "/instances/calm-heron-7", "calm-heron-7"),
    (
        "terminal",
        "/instances/calm-heron-7/terminal",
        "Terminal of calm-heron-7",
    ),
    ("usage", "/usage", "Usage"),
    ("events", "/events", "Events"),
    ("audit", "/audit", "Audit log"),
    ("keys", "/settings/keys", "API Key"),
    ("ssh-keys", "/settings/ssh-keys", "SSH keys"),
    ("account", "/settings/account", "Account"),
    ("buckets", "/settings/buckets", "Buckets"),
    ("bucket", "/settings/buckets/offsite", "offsite"),
    ("webhooks", "/settings/webhooks", "Webhooks"),
    ("device", "/device#ABCD-EFGH", "Sign a terminal in"),
    (
        "missing",
        "/instances/not-there",
        "There is no instance not-there",
    ),
];
/// Name, color scheme, width and height.
pub const LOOKS: [(&str, &str, u32, u32); 3] = [
    ("light", "light", 1400, 900),
    ("dark", "dark", 1400, 900),
    ("phone", "light", 360, 740),
];

#[test]
fn every_page_is_accessible_and_fits_a_phone() {
    let Some(offsite) = Offsite::start(&simulated_node("one", "content = true")) else {
        return;
    };
    let desk = &offsite.desk;
    let volume = json!({ "name": "reference-genome", "size_gib": 40 });
    let volume = desk.api.send("POST", "/api/volume/", &volume).unwrap();
    volume.expect(201).unwrap();
    let readers = json!({ "user": "bob@example.com" });
    let path = "/api/volume/reference-genome/share/";
    let shared = desk.api.send("POST", path, &readers).unwrap();
    shared.expect(201).unwrap();
    for name in ["brave-otter-12", "calm-heron-7"] {
        let mut body = container(name);
        body["volumes"] =
            json!([{ "volume": "reference-genome", "path": "/data", "read_only": true }]);
        desk.api.create(&body).unwrap().expect(201).unwrap();
        desk.api.wait_for(name, "running").unwrap();
    }
    desk.snapshot("brave-otter-12").unwrap();
    offsite.backup("brave-otter-12");
    let vm = json!({
        "resource_type": "vm", "name": "gate-vm", "n_vcpus": 1, "mem_gib": 2, "disk_size_gib": 20,
    });
    desk.api.create(&vm).unwrap().expect(201).unwrap();
    desk.api.wait_for("gate-vm", "running").unwrap();
    desk.api
        .act("calm-heron-7", "stop")
        .unwrap()
        .expect(200)
        .unwrap();
    let mut commands = BTreeSet::new();
    for (look, scheme, width, height) in LOOKS {
        desk.browser.prefer(scheme).unwrap();
        desk.browser.resize(width, height).unwrap();
        for (name, path, words) in PAGES {
            let page = format!("{name}-{look}");
            visit(desk, path, words, width)
                .with_context(|| page.clone())
                .unwrap();
            commands.extend(commands_of(desk).unwrap());
            desk.picture(&page).unwrap();
            axe::check(&desk.browser, &page).unwrap();
        }
        let page = format!("help-{look}");
        desk.browser.run("document.activeElement.blur()").unwrap();
        desk.browser.type_keys("?").unwrap();
        desk.browser.wait_for_text("Filter the list").unwrap();
        desk.picture(&page).unwrap();
        axe::check(&desk.browser, &page).unwrap();
    }
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        understands(&command)
            .with_context(|| command.clone())
            .unwrap();
    }
}

/// The commands that the page shows.
fn commands_of(desk: &Desk) -> Result<Vec<String>> {
    let shown = desk
        .browser
        .run("return [...document.querySelectorAll('.command code')].map((e) => e.textContent)")?;
    let shown = shown.as_array().context("no list")?.iter();
    Ok(shown.filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Whether the program knows the options and arguments of a command that a page shows.
fn understands(command: &str) -> Result<()> {
    let mut words = command.split(' ');
    ensure!(words.next() == Some("wharf"), "another program");
    let help = Command::new(wharf_binary())
        .args(words)
        .arg("--help")
        .output()?;
    ensure!(
        help.status.success(),
        "{}",
        String::from_utf8_lossy(&help.stderr)
    );
    Ok(())
}

fn visit(desk: &Desk, path: &str, words: &str, width: u32) -> Result<()> {
    desk.open(path, "h1")?;
    desk.browser.wait_for(words, &title(words))?;
    desk.settle()?;
    let wide = desk
        .browser
        .run("return document.documentElement.scrollWidth")?;
    let wide = wide.as_u64().context("no width")?;
    ensure!(
        wide <= u64::from(width),
        "{wide} pixels are wider than {width}"
    );
    let others = desk.browser.run(
        "return performance.getEntriesByType('resource').map((e) => e.name)\
         .filter((name) => new URL(name).origin !== location.origin)",
    )?;
    ensure!(others == json!([]), "requests to other hosts: {others}");
    Ok(())
}
