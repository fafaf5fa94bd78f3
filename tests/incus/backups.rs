//! A backup, an instance that is made from it, with kills of the engine in each, and its move to a node that Wharf takes
//! for one of another cluster.

use super::context::IncusContext;
use crate::backups::SETTINGS;
use crate::grow::{FILL, LIST};
use crate::lab::{Lab, inside, running, text, user, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use wharf_testkit::object_store::{ACCESS_KEY_ID, BUCKET, ObjectStore, SECRET_ACCESS_KEY};
use wharf_tests::{Api, Server, caught, until};

/// The member whose daemon is killed, and that of the move.
const KILLED: usize = 0;
const OTHER: usize = 1;

pub fn and_back(context: &IncusContext) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = ObjectStore::start(directory.path())?;
    let settings = context.settings_of(&[KILLED, OTHER], SETTINGS);
    let (first, second) = settings.rsplit_once("\"rack\"").context("no cluster")?;
    let server = Server::start(&format!("{first}\"other\"{second}"))?;
    let api = server.user("ann@example.com")?;
    let other = &context.member(OTHER).name;
    server.cli(&["node", "drain", other])?;
    let bucket = json!({
        "name": "store", "endpoint": store.url, "bucket": BUCKET, "passphrase": "correct horse battery",
        "access_key_id": ACCESS_KEY_ID, "secret_access_key": SECRET_ACCESS_KEY,
    });
    api.send("POST", "/api/bucket/", &bucket)?.expect(201)?;
    let source = running(&api)?;
    user(&source).wait_for_login(&source)?;
    root(&source, FILL)?;
    let listed = content(&source)?;

    let path = format!("/api/instance/{}/backup/", uuid(&source));
    let made = until("the node takes backups", || {
        let answer = api.send("POST", &path, &json!({ "bucket": "store" }))?;
        Ok((answer.status == 201).then_some(answer))
    })?;
    let path = format!("/api/backup/{}/", text(&made.expect(201)?["id"]));
    caught("an image is made", || makes_image(context))?;
    kill(context)?;
    let done = until("the backup ends", || {
        let now = api.get(&path)?.expect(200)?;
        Ok((now["state"] != "running").then_some(now))
    })?;
    ensure!(done["state"] == "done", "{done}");
    ensure!(
        content(&source)? == listed,
        "the instance itself has changed"
    );
    no_image_is_left(context)?;
    context.remove(&api, &source)?;

    let body = json!({ "name": "back", "n_vcpus": 1, "mem_gib": 1 });
    let made = api.send("POST", &format!("{path}restore/"), &body)?;
    let made = made.expect(201)?;
    caught("the content comes", || makes_image(context))?;
    kill(context)?;
    caught("the instance is created", || {
        Ok((!context.raw_objects(&made)?.is_empty()).then_some(()))
    })?;
    kill(context)?;
    let back = run_again(&api, &made)?;
    user(&back).wait_for_login(&back)?;
    ensure!(content(&back)? == listed, "other content has come back");
    let password = "original_service_password";
    ensure!(back[password] != source[password], "the old password");
    let more = inside(&back, "fallocate -l 11G beyond");
    ensure!(more.is_err(), "more than the disk fits on it");
    inside(&back, "rm -f beyond")?;
    no_image_is_left(context)?;

    api.act(uuid(&back), "stop")?.expect(200)?;
    api.wait_for(uuid(&back), "exited")?;
    server.cli(&["node", "resume", other])?;
    let begun = until("a move begins", || {
        Ok(server.cli(&["move", "back", other]).ok())
    })?;
    ensure!(begun.contains("its content is copied"), "{begun}");
    until("it has moved", || {
        let now = api.instance(uuid(&back))?.expect(200)?;
        Ok((now["lan_ipv4"] != back["lan_ipv4"]).then_some(()))
    })?;
    ensure!(context.object(&back)?.place == *other, "it is elsewhere");
    api.act(uuid(&back), "restart")?.expect(200)?;
    let there = run_again(&api, &back)?;
    user(&there).wait_for_login(&there)?;
    ensure!(content(&there)? == listed, "other content has moved");
    // Its names and addresses are by templates of its own.
    ensure!(inside(&there, "hostname")? == "back");
    let addresses = inside(&there, "ip -brief address show eth0")?;
    ensure!(addresses.contains(text(&there["lan_ipv4"])), "{addresses}");
    ensure!(there[password] == back[password], "another password");
    no_image_is_left(context)?;
    let back = there;
    context.remove(&api, &back)?;
    server.finish()
}

fn run_again(api: &Api, instance: &Value) -> Result<Value> {
    until("it runs", || {
        let now = api.instance(uuid(instance))?.expect(200)?;
        ensure!(now["state"] != "error", "{now}");
        Ok((now["state"] == "running").then_some(now))
    })
}

fn kill(context: &IncusContext) -> Result<()> {
    context.cluster().member(KILLED)?.kill()?;
    context.cluster().member(KILLED)?.resume()
}

/// Whether the engine makes an image.
fn makes_image(context: &IncusContext) -> Result<Option<()>> {
    let operations = context.ask("GET", "/1.0/operations?project=wharf&recursion=1", None)?;
    let running = operations["running"].to_string();
    Ok(running.contains("Downloading image").then_some(()))
}

fn no_image_is_left(context: &IncusContext) -> Result<()> {
    until("the images with content go", || {
        let images = context.ask("GET", "/1.0/images?project=wharf&recursion=1", None)?;
        Ok((!images.to_string().contains("wharf.content")).then_some(()))
    })
}

/// The list of files, without what differs between an instance and one that is made from its backup.
fn content(instance: &Value) -> Result<String> {
    let listed = root(instance, LIST)?;
    let common = |line: &&str| !line.starts_with("etc") && !line.contains("/etc/shadow");
    let lines: Vec<_> = listed.lines().filter(common).collect();
    Ok(lines.join("\n"))
}

fn root(instance: &Value, script: &str) -> Result<String> {
    let script = script.replace('\'', r"'\''");
    inside(instance, &format!("sudo bash -c '{script}'"))
}
