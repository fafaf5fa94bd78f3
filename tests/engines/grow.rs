//! Growth of the disk of a stopped instance.

use crate::context::EngineContext;
use crate::lab::{Lab, inside};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};
use wharf_tests::{Answer, Api, KeyPair, Login, caught, eventually, small, until};

/// Content of every kind, as root: 300 MiB, links, a pipe, owners, modes, times, a capability, and
/// names too long for an archive's plain headers. It also removes some files of the image.
pub(crate) const FILL: &str = r#"set -e
mkdir -p /root/d; cd /root/d; head -c 314572800 /dev/urandom > random; ln random hard; ln -s random soft
mkfifo pipe; truncate -s 64M holes; cp /bin/ls listing; chown 1234:4321 pipe listing; chmod 4751 listing
touch -d '2001-02-03 04:05:06' listing; mkdir -m 2750 grüße; touch "grüße/$(printf 'n%.0s' $(seq 220))"
mkdir -p grüße/etc etc; echo kept > etc/kept; chown -R 1000:1000 grüße
python3 -c "import os, struct; os.setxattr('/root/d/random', 'security.capability', struct.pack('<5I', 0x02000001, 1 << 10, 0, 0, 0))"
rm -r /usr/share/common-licenses /srv; rm /etc/issue; mkdir /top; echo more > /top/file; echo own >> /etc/profile"#;

/// Lists all files with kind, mode, owner, links and size, and their content.
pub(crate) const LIST: &str = r#"cd /; for d in etc home opt root top usr; do find $d -printf '%p %y %m %U %G %n %l\n'; done | sort
find /root/d -type f -printf '%p %s %TY-%Tm-%Td %TH:%TM\n' | sort; sha256sum /root/d/random /root/d/hard /etc/profile /etc/shadow
python3 -c "import os; print(os.getxattr('/root/d/random', 'security.capability').hex())"
test /root/d/random -ef /root/d/hard && echo one file; find /srv 2>/dev/null | wc -l"#;

/// Returns the instance's SSH host key.
pub fn host_key(instance: &Value) -> Result<String> {
    let port = instance["wan_ssh_port"].to_string();
    let mut scan = Command::new("ssh-keyscan");
    let out = scan
        .args(["-t", "ed25519", "-p", &port, "127.0.0.1"])
        .output()?;
    let key = String::from_utf8(out.stdout)?;
    ensure!(!key.is_empty(), "no host key");
    Ok(key)
}

fn patch(api: &Api, selector: &str, disk: u32) -> Result<Answer> {
    let body = json!({ "disk_size_gib": disk });
    api.send("PATCH", &format!("/api/instance/{selector}/"), &body)
}

/// Requests a larger disk for a stopped instance.
pub fn ask(api: &Api, selector: &str, disk: u32) -> Result<()> {
    let resized = patch(api, selector, disk)?.expect(200)?;
    ensure!(resized["disk_size_gib"] == disk, "{resized}");
    Ok(())
}

pub fn with_all_that_is_on_it(context: &EngineContext) -> Result<()> {
    if !context.enforces_disk_size() {
        println!("SKIPPED: this kernel has no btrfs, so the engine cannot limit disks");
        return Ok(());
    }
    let (server, api) = context.served("")?;
    let pair = KeyPair::new()?;
    let mut body = small("container");
    body["name"] = json!("growing");
    body["public_key"] = json!(pair.public);
    api.create(&body)?.expect(201)?;
    let before = api.wait_for("growing", "running")?;
    let refused = patch(&api, "growing", 12)?.expect(400)?;
    let message = refused["disk_size_gib"][0].as_str().unwrap_or_default();
    api.act("growing", "stop")?.expect(200)?;
    if !context.grows_disks() {
        ensure!(patch(&api, "growing", 12)?.status == 400);
        return server.finish();
    }
    ensure!(message.contains("stop it first"), "{refused}");
    api.act("growing", "restart")?.expect(200)?;
    api.wait_for("growing", "running")?;

    let login = Login::Key(&pair);
    let root = |script: &str| -> Result<String> {
        let script = format!("sudo bash -c '{}'", script.replace('\'', r"'\''"));
        login.output(&before, &script)
    };
    root(FILL)?;
    let listed = root(LIST)?;
    let key = until("SSH answers", || Ok(host_key(&before).ok()))?;
    api.act("growing", "stop")?.expect(200)?;
    ask(&api, "growing", 12)?;
    let begin = Instant::now();
    let answer = api.act("growing", "restart")?.expect(200)?;
    ensure!(answer["state"] == "running", "{answer}");
    let answered = begin.elapsed();
    ensure!(
        answered < Duration::from_secs(40),
        "answered in {answered:?}"
    );
    eventually("the login works", Duration::from_secs(240), || {
        Ok(login.output(&before, "id -un").ok())
    })?;
    println!(
        "300 MiB and the image to a larger disk: restart answered in {answered:.1?}, login after {:.1?}",
        begin.elapsed()
    );

    let after = api.wait_for("growing", "running")?;
    for field in ["lan_ipv4", "wan_ssh_port", "original_service_password"] {
        ensure!(before[field] == after[field], "{field}: {before} {after}");
    }
    ensure!(inside(&after, "id -un")? == "user");
    ensure!(host_key(&after)? == key, "another host key");
    same(&listed, &root(LIST)?)?;
    root("fallocate -l 10500M /root/more && rm /root/more")?;
    ensure!(
        root("fallocate -l 13G /root/much").is_err(),
        "13 GiB fit on a disk of 12"
    );
    let container = context.container_of(&after)?;
    ensure!(container["State"] == "running", "{container}");
    let names = format!("{}", container["Names"]);
    ensure!(
        names.contains(&format!(
            "wharf-{}\"",
            after["uuid"].as_str().unwrap_or("?")
        )),
        "{names}"
    );
    let images = images_of(context, &after)?;
    ensure!(images.is_empty(), "the growth has left {images:?}");
    // The instance stops and starts as before, and its disk can grow again.
    api.act("growing", "stop")?.expect(200)?;
    ask(&api, "growing", 13)?;
    let request = {
        let api = api.clone();
        std::thread::spawn(move || api.act("growing", "restart"))
    };
    caught("the larger container is there", || {
        ensure!(!request.is_finished(), "the growth ended unseen");
        Ok((context.containers_of(&after)?.len() > 1).then_some(()))
    })?;
    // A deletion during growth leaves nothing.
    api.delete("growing")?.expect(204)?;
    drop(request.join());
    eventually(
        "the engine has no object of the instance",
        Duration::from_secs(120),
        || Ok(context.containers_of(&after)?.is_empty().then_some(())),
    )?;
    server.finish()
}

/// Returns the ids of the images that were made of an instance.
fn images_of(context: &EngineContext, instance: &Value) -> Result<Vec<String>> {
    let list = context.client().get("/images/json?all=true")?;
    let all = list.as_array().context("images")?.iter();
    let own = all.filter(|image| image["Labels"]["io.wharf.instance"] == instance["uuid"]);
    Ok(own.map(|image| image["Id"].to_string()).collect())
}

fn is_mtab(line: &str) -> bool {
    line.starts_with("etc/mtab l ")
}

/// Checks that two lists are equal.
pub(crate) fn same(before: &str, after: &str) -> Result<()> {
    let lines = |text: &str| -> BTreeSet<String> { text.lines().map(str::to_owned).collect() };
    let (before, after) = (lines(before), lines(after));
    // The image's top-level directories cannot be removed, but their content is. The owner of a
    // link by the engine itself does not exist in the container until the link is copied.
    let differs = |line: &&String| !matches!(line.as_str(), "0" | "1") && !is_mtab(line);
    ensure!(after.iter().any(|line| is_mtab(line)), "/etc/mtab is gone");
    let gone: Vec<_> = before.difference(&after).filter(differs).take(10).collect();
    let new: Vec<_> = after.difference(&before).filter(differs).take(10).collect();
    if gone.is_empty() && new.is_empty() {
        return Ok(());
    }
    bail!("missing: {gone:#?}, new: {new:#?}")
}
