//! A full disk: changes that free nothing are refused early, the rest goes on, and nothing acknowledged
//! is lost.

use crate::sign_in::{ANN, ConsoleBrowser, PASSWORD};
use crate::{Expected, made, until_true, uuid, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use wharf_tests::{Api, Ports, Server, metric, simulated_node, small};

const MIB: usize = 1 << 20;

/// A small file system. Dropping it removes it.
pub struct Mount(PathBuf);

impl Mount {
    pub fn new(path: &Path) -> Self {
        let mount = ["-t", "tmpfs", "-o", "size=96m,mode=700", "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(path).status();
        assert!(mounted.unwrap().success());
        Self(path.to_owned())
    }

    fn free(&self) -> usize {
        let found = rustix::fs::statvfs(&self.0).unwrap();
        usize::try_from(found.f_bavail * found.f_frsize).unwrap()
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Leaves this number of bytes free.
    pub fn fill(&self, rest: usize) {
        let mut file = fs::File::create(self.filler()).unwrap();
        let zeros = vec![1; 4096];
        while self.free() > rest && file.write_all(&zeros).is_ok() {}
    }

    pub fn clear(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Starts a server whose data directory is a small file system; none without root.
fn start(reserve_mib: u64) -> Option<(Mount, Server, Api)> {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("CI").is_none(), "this test needs root");
        eprintln!("SKIPPED: mounting needs root");
        return None;
    }
    let node = simulated_node("one", "");
    let ports = Ports::take().settings();
    let settings = format!("{ports}[limits]\ndisk_reserve_mib = {reserve_mib}\n{node}");
    let mut server = crate::serve(&settings);
    server.terminate().unwrap();
    let (data, aside) = (server.data_dir(), server.data_dir().with_file_name("aside"));
    fs::rename(&data, &aside).unwrap();
    fs::create_dir(&data).unwrap();
    let mount = Mount::new(&data);
    let copy = format!("cp -a {}/. {}/", aside.display(), data.display());
    let copied = Command::new("sh").args(["-c", &copy]).status();
    assert!(copied.unwrap().success());
    server.run().unwrap();
    let api = server.user("ann@example.com").unwrap();
    Some((mount, server, api))
}

fn ids(api: &Api) -> BTreeSet<String> {
    let list = api.list().unwrap();
    list.iter().map(|i| uuid(i).to_owned()).collect()
}

#[test]
fn creations_are_refused_below_the_reserve_and_other_requests_are_served() {
    let Some((mount, _server, api)) = start(16) else {
        return;
    };
    let refusals = || metric(&api, "wharf_disk_full_refusals_total ").unwrap();
    assert_eq!(refusals(), 0.0);
    let made = [(); 2].map(|()| api.small_container().unwrap());
    for instance in &made {
        api.wait_for(uuid(instance), "running").unwrap();
    }
    mount.fill(8 * MIB);
    let body = small("container");
    // An estimate is refused alike, but it creates nothing, so that the node keeps its room.
    let estimate = || api.send("POST", "/api/estimate/", &body);
    until_true("creations are refused", || {
        estimate().unwrap().status == 503
    });
    assert_eq!(refusals(), 0.0);
    let text = api.create(&body).is(503)["detail"].to_string();
    assert!(text.contains("short of disk space"), "{text}");
    let ready = api.get("/readyz").is(200);
    assert_eq!(ready["status"], "ready");
    assert!(ready["notice"].to_string().contains("no new instances"));
    assert_eq!(refusals(), 1.0);
    assert_eq!(estimate().unwrap().status, 503);
    assert_eq!(refusals(), 1.0);
    api.act(uuid(&made[0]), "stop").is(200);
    api.delete(uuid(&made[1])).is(204);
    mount.clear();
    until_true("creations are accepted", || {
        api.create(&body).unwrap().status == 201
    });
    let ready = api.get("/readyz").is(200);
    assert_eq!(ready, serde_json::json!({ "status": "ready" }));
}

#[test]
fn below_the_reserve_only_changes_that_free_something_are_taken() {
    let Some((mount, server, api)) = start(16) else {
        return;
    };
    let bob = server.user("bob@example.com").unwrap();
    let bobs = bob.small_container().unwrap();
    let mut browser = ConsoleBrowser::accepted(&server, ANN);
    let [running, stopped, vm] =
        [small("container"), small("container"), small("vm")].map(|body| {
            let made = made(&api, &body);
            uuid(&made).to_owned()
        });
    api.act(&stopped, "stop").is(200);
    let port = json!({ "port": 8080 });
    let ports = |action: &str| format!("/api/instance/{vm}/{action}/");
    api.send("POST", &ports("add-port"), &port).is(200);
    let post = |path: &str, body: &Value| api.send("POST", path, body).is(201)["id"].clone();
    let public_key = "ssh-ed25519 \
        AAAAC3NzaC1lZDI1NTE5AAAAIFIkGWuBbBTx9nTEHwsrBJV4jF7lFQyMDmE6pDnoO4Yg";
    let saved = |name: &str| json!({ "name": name, "public_key": public_key });
    let hook = json!({ "url": "https://receiver.example.org/" });
    let made = [
        ("/api/key/", post("/api/key/", &json!({}))),
        ("/api/ssh-key/", post("/api/ssh-key/", &saved("first"))),
        ("/api/webhook/", post("/api/webhook/", &hook)),
    ];
    let hook_path = format!("/api/webhook/{}/", made[2].1.as_str().unwrap());
    mount.fill(8 * MIB);
    // An estimate is refused alike, but it creates nothing, so that the node keeps its room.
    wait_until("creations are refused", || {
        let estimate = api.send("POST", "/api/estimate/", &small("container"))?;
        Ok((estimate.status == 503).then_some(()))
    });
    let of_instance = |id: &str, action: &str| format!("/api/instance/{id}/{action}");
    for (method, path, body) in [
        ("POST", "/api/key/".to_owned(), json!({})),
        ("POST", "/api/ssh-key/".to_owned(), saved("second")),
        ("POST", "/api/webhook/".to_owned(), hook),
        ("POST", format!("{hook_path}test/"), Value::Null),
        ("POST", format!("{hook_path}rotate/"), Value::Null),
        (
            "PATCH",
            "/api/preferences/".to_owned(),
            json!({ "allow_moves": true }),
        ),
        (
            "PATCH",
            of_instance(&running, ""),
            json!({ "name": "other" }),
        ),
        ("POST", of_instance(&stopped, "restart/"), Value::Null),
        ("POST", ports("add-port"), json!({ "port": 8081 })),
    ] {
        let refused = api.send(method, &path, &body).unwrap();
        assert_eq!(refused.status, 503, "{method} {path}: {refused:?}");
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    api.act(&running, "stop").is(200);
    api.send("POST", &ports("remove-port"), &port).is(200);
    for (path, id) in made {
        let path = format!("{path}{}/", id.as_str().unwrap());
        api.send("DELETE", &path, &Value::Null).is(204);
    }
    browser.sign_in(PASSWORD);
    browser
        .send("POST", "/auth/sign-out/", &Value::Null)
        .is(204);
    for id in [&running, &stopped, &vm] {
        api.delete(id).is(204);
    }
    bob.delete(uuid(&bobs)).is(204);
    // A request that changes nothing is answered.
    assert_eq!(
        api.send("PATCH", "/api/preferences/", &json!({}))
            .unwrap()
            .status,
        200
    );
    mount.clear();
}

#[test]
fn a_disk_without_any_room_loses_nothing_that_was_acknowledged() {
    // Without a reserve, writes go on to the last byte.
    let Some((mount, mut server, api)) = start(0) else {
        return;
    };
    for _ in 0..6 {
        api.small_container().unwrap();
    }
    let mut kept = ids(&api);
    mount.fill(0);
    let doomed: Vec<_> = kept.iter().take(3).cloned().collect();
    let mut unknown = BTreeSet::new();
    let renamed = kept.iter().last().unwrap().clone();
    let mut name = None;
    'full: for id in &doomed {
        for n in 0..100 {
            let next = format!("renamed-{n}-{}", &id[30..]);
            let body = serde_json::json!({ "name": next });
            match api.patch(&renamed, &body) {
                Ok(response) if response.status == 200 => name = Some(next),
                // The server ends when its disk takes no write, and cannot say whether this one holds.
                _ => {
                    name = None;
                    break 'full;
                }
            }
        }
        match api.delete(id) {
            Ok(response) if response.status == 204 => drop(kept.remove(id)),
            _ => {
                unknown.insert(id.clone());
                break;
            }
        }
    }
    server.kill().unwrap();
    mount.clear();
    server.run().unwrap();
    let api = server.again(&api);
    let found = ids(&api);
    let certain: BTreeSet<_> = kept.difference(&unknown).cloned().collect();
    assert!(found.is_superset(&certain), "{found:?} lacks {certain:?}");
    assert!(kept.is_superset(&found), "{found:?} beyond {kept:?}");
    if let Some(name) = name {
        let row = api.instance(&renamed).is(200);
        assert_eq!(row["name"], name.as_str());
    }
    api.small_container().unwrap();
}
