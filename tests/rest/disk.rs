//! A full disk: creations are refused early, the rest goes on, and nothing acknowledged is lost.

use crate::{Expected, uuid, wait_until};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use wharf_tests::{Api, Ports, Server, simulated_node, until};

const MIB: usize = 1 << 20;

/// A small file system. Dropping it removes it.
struct Mount(PathBuf);

impl Mount {
    fn new(path: &Path) -> Self {
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
    fn fill(&self, rest: usize) {
        let mut file = fs::File::create(self.filler()).unwrap();
        let zeros = vec![1; 4096];
        while self.free() > rest && file.write_all(&zeros).is_ok() {}
    }

    fn clear(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Starts a server whose data directory is a small file system; none without root.
fn start() -> Option<(Server, Api, Mount)> {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("CI").is_none(), "this test needs root");
        eprintln!("SKIPPED: mounting needs root");
        return None;
    }
    let node = simulated_node("one", "");
    let ports = Ports::take().settings();
    let settings = format!("{ports}[limits]\ndisk_reserve_mib = 16\n{node}");
    let mut server = Server::start(&settings).unwrap();
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
    Some((server, api, mount))
}

/// The number of creations that the metrics show as refused for a full disk.
fn refusals(server: &Server) -> u64 {
    let args = ["key", "new", "ann@example.com", "--scope", "metrics"];
    let key = server.cli(&args).unwrap();
    let address = server.base_url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let key = key.trim();
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.strip_prefix("wharf_disk_full_refusals_total "));
    count.expect(&text).parse().unwrap()
}

fn ids(api: &Api) -> BTreeSet<String> {
    let list = api.list().unwrap();
    list.iter().map(|i| uuid(i).to_owned()).collect()
}

#[test]
fn creations_are_refused_below_the_reserve_and_other_requests_are_served() {
    let Some((server, api, mount)) = start() else {
        return;
    };
    assert_eq!(refusals(&server), 0);
    let made = [(); 2].map(|()| api.small_container().unwrap());
    for instance in &made {
        api.wait_for(uuid(instance), "running").unwrap();
    }
    mount.fill(8 * MIB);
    let body = wharf_tests::small("container");
    let refused = until("creations are refused", || {
        let response = api.create(&body)?;
        Ok((response.status == 503).then_some(response))
    });
    let text = refused.is(503)["detail"].to_string();
    assert!(text.contains("short of disk space"), "{text}");
    let ready = api.get("/readyz").is(200);
    assert_eq!(ready["status"], "ready");
    assert!(ready["notice"].to_string().contains("no new instances"));
    let counted = refusals(&server);
    assert!(counted >= 1);
    // An estimate is refused alike, but it creates nothing.
    let estimate = api.send("POST", "/api/estimate/", &body).unwrap();
    assert_eq!((estimate.status, refusals(&server)), (503, counted));
    api.act(uuid(&made[0]), "stop").is(200);
    api.delete(uuid(&made[1])).is(204);
    mount.clear();
    wait_until("creations are accepted", || {
        Ok((api.create(&body)?.status == 201).then_some(()))
    });
    let ready = api.get("/readyz").is(200);
    assert_eq!(ready, serde_json::json!({ "status": "ready" }));
    server.finish().unwrap();
}

#[test]
fn a_disk_without_any_room_loses_nothing_that_was_acknowledged() {
    let Some((mut server, api, mount)) = start() else {
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
            match api.send("PATCH", &format!("/api/instance/{renamed}/"), &body) {
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
    server.finish().unwrap();
}
