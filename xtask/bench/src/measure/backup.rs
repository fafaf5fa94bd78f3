//! Backups of containers on dockerd in a bucket. The baseline is `tar | zstd -1 | rclone rcat` of the same tree to the
//! same bucket. A bystander's create beside four backups has its create alone as baseline.

use super::engine::{Ours, is_possible, node_of, private};
use super::snapshot::{Source, inside, seconds, text};
use crate::Options;
use crate::pairs::Pairs;
use crate::table::{Table, Target};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use wharf_testkit::engine::Kind;
use wharf_testkit::http::HttpClient;
use wharf_testkit::images;
use wharf_testkit::object_store::{ACCESS_KEY_ID, BUCKET, ObjectStore, SECRET_ACCESS_KEY};
use wharf_testkit::packages::{self, Need};
use wharf_testkit::process::run as run_to_end;

/// Pairs of runs, and of those with four backups at once.
const PAIRS: usize = 5;
const LATE_PAIRS: usize = 3;
/// Data beside those of the image. Half of them do not compress.
const FILL: &str = "head -c 500000000 /dev/urandom > /home/user/data; \
     for n in 1 2 3 4; do tar -c /usr; done | head -c 500000000 > /home/user/programs; sync";
/// More data, which takes no room on the disk of the instance and in the bucket.
const MORE: &str = "truncate -s 9000000000 /home/user/more";
/// Backups beside a create.
const AT_ONCE: usize = 4;
/// The targets: of the speed beside the baseline, of the memory in MiB, and of a create beside four backups.
const SPEED: f64 = 0.6;
const MEMORY: f64 = 64.0;
const LATENESS: f64 = 1.5;
const DEADLINE: Duration = Duration::from_secs(1200);
/// The object store is on the loopback network.
const SETTINGS: &str = "[buckets]\nhttp = true\nallow = [\"127.0.0.0/8\"]\n";
const NEEDS: [Need; 2] = [
    Need {
        program: "rclone",
        package: "rclone",
        why: "the baseline of backups",
    },
    Need {
        program: "zstd",
        package: "zstd",
        why: "the baseline of backups",
    },
];

/// Measures backups.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    if !is_possible(options, table, "backups") {
        return Ok(());
    }
    packages::ensure(&NEEDS)?;
    let dir = tempfile::Builder::new().prefix("wharf-bench-").tempdir()?;
    let engine = private(Kind::Dockerd, dir.path())?;
    images::ensure(&engine.client(), &["base"])?;
    let node = format!("{}{SETTINGS}", node_of(&engine)?);
    let measured = Ours::start_on(&node, engine.client(), dir.path())
        .and_then(|ours| on(&ours, &engine.client(), dir.path(), table));
    engine.stop()?;
    measured
}

fn on(ours: &Ours, client: &HttpClient, dir: &Path, table: &mut Table) -> Result<()> {
    let store = ObjectStore::start(&dir.join("objects"))?;
    let bucket = json!({
        "name": "store", "endpoint": store.url, "bucket": BUCKET, "passphrase": "correct horse battery",
        "access_key_id": ACCESS_KEY_ID, "secret_access_key": SECRET_ACCESS_KEY,
    });
    ours.send("POST", "/api/bucket/", Some(bucket))?;
    let source = Source::create(ours, 20)?;
    let name = format!("wharf-{}", source.id);
    inside(client, &name, FILL)?;
    beside_rclone(ours, &source, client, &store, table)?;
    beside_create(ours, &source, table)?;

    inside(client, &name, MORE)?;
    let mut sent = Vec::new();
    let memory = ours.wharf.memory_during(|| {
        for _ in 0..2 {
            sent.push(done(ours, &begin(ours, &source.id)?)?);
        }
        Ok(())
    })?;
    let gb = |backup: &Value, of: &str| format!("{:.2}", backup[of].as_f64().unwrap_or(0.0) / 1e9);
    let objects: Vec<_> = sent
        .iter()
        .map(|backup| gb(backup, "object_bytes"))
        .collect();
    let content = sent.first().map(|backup| gb(backup, "content_bytes"));
    table.row(
        format!(
            "memory of a backup of {} GB, MiB",
            content.unwrap_or_default()
        ),
        (
            format!("{memory:.1} MiB; sends {} GB", objects.join(", then ")),
            String::new(),
        ),
        memory,
        Target::AtMost(MEMORY),
    );
    Ok(())
}

fn beside_rclone(
    ours: &Ours,
    source: &Source,
    client: &HttpClient,
    store: &ObjectStore,
    table: &mut Table,
) -> Result<()> {
    let process = client.get(&format!("/containers/wharf-{}/json", source.id))?;
    let root = format!("/proc/{}/root", process["State"]["Pid"]);
    let rclone = |command: &str| {
        let mut shell = Command::new("bash");
        shell.args(["-o", "pipefail", "-c", command]);
        // rclone refuses a list of authorities.
        shell.env_remove("AWS_CA_BUNDLE");
        for (name, value) in [
            ("RCLONE_CONFIG", "/dev/null"),
            ("RCLONE_CONFIG_STORE_TYPE", "s3"),
            ("RCLONE_CONFIG_STORE_PROVIDER", "Other"),
            ("RCLONE_CONFIG_STORE_ENDPOINT", &store.url),
            ("RCLONE_CONFIG_STORE_ACCESS_KEY_ID", ACCESS_KEY_ID),
            ("RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY),
        ] {
            shell.env(name, value);
        }
        run_to_end(&mut shell)
    };
    let packed = format!(
        "tar -C {root} --one-file-system -c . | zstd -q -1 | rclone rcat store:{BUCKET}/baseline"
    );
    let pairs = Pairs::measure(
        PAIRS,
        || {
            let begun = Instant::now();
            let backup = begin(ours, &source.id)?;
            done(ours, &backup)?;
            let took = begun.elapsed();
            remove(ours, &[backup])?;
            Ok(took)
        },
        || {
            let begun = Instant::now();
            rclone(&packed)?;
            let took = begun.elapsed();
            rclone(&format!("rclone deletefile store:{BUCKET}/baseline"))?;
            Ok(took)
        },
    )?;
    let (ours, theirs, ratio) = pairs.median(Duration::as_secs_f64)?;
    table.row(
        "speed of a backup of 1 GB",
        (
            seconds(*ours),
            format!("{}, tar, zstd and rclone", seconds(*theirs)),
        ),
        ratio.recip(),
        Target::AtLeast(SPEED),
    );
    Ok(())
}

/// Clones share the data, so that their snapshots are short and their backups long.
fn beside_create(ours: &Ours, source: &Source, table: &mut Table) -> Result<()> {
    let snapshot = source.take(ours, "kept")?;
    let path = format!("/api/snapshot/{}/clone/", text(&snapshot["id"])?);
    let wanted = json!({ "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 20 });
    let mut clones = Vec::new();
    for _ in 0..AT_ONCE {
        let clone = ours.send("POST", &path, Some(wanted.clone()))?;
        ours.until("/api/instance/", &clone["uuid"], "running", DEADLINE)?;
        clones.push(text(&clone["uuid"])?);
    }
    let create = || {
        let small = json!({
            "resource_type": "container", "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
        });
        ours.one(small, Duration::ZERO, DEADLINE)
    };
    create()?;
    let pairs = Pairs::measure(
        LATE_PAIRS,
        || {
            let backups = clones.iter().map(|clone| begin(ours, clone));
            let backups = backups.collect::<Result<Vec<_>>>()?;
            for backup in &backups {
                while !leaves(&state(ours, backup)?)? {
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
            let took = create()?;
            for backup in &backups {
                ensure!(
                    leaves(&state(ours, backup)?)?,
                    "a backup was done too early"
                );
            }
            remove(ours, &backups)?;
            Ok(took)
        },
        create,
    )?;
    let (late, alone, ratio) = pairs.median(Duration::as_secs_f64)?;
    table.row(
        format!("create → running beside {AT_ONCE} backups"),
        (seconds(*late), format!("{}, alone", seconds(*alone))),
        ratio,
        Target::AtMost(LATENESS),
    );
    for clone in clones {
        ours.remove(&clone, DEADLINE)?;
    }
    ours.send(
        "DELETE",
        &format!("/api/snapshot/{}/", text(&snapshot["id"])?),
        None,
    )?;
    Ok(())
}

fn begin(ours: &Ours, instance: &str) -> Result<String> {
    let path = format!("/api/instance/{instance}/backup/");
    text(&ours.send("POST", &path, Some(json!({ "bucket": "store" })))?["id"])
}

fn state(ours: &Ours, backup: &str) -> Result<Value> {
    let now = ours.send("GET", &format!("/api/backup/{backup}/"), None)?;
    ensure!(now["reason"].is_null(), "{now}");
    Ok(now)
}

/// Whether the content of a backup is on its way.
fn leaves(backup: &Value) -> Result<bool> {
    ensure!(backup["state"] == "running", "it has ended: {backup}");
    Ok(backup["progress"]
        .as_str()
        .is_some_and(|words| words.contains("MiB")))
}

fn done(ours: &Ours, backup: &str) -> Result<Value> {
    ours.until("/api/backup/", &backup.into(), "done", DEADLINE)
}

/// Removes all backups, and waits until their snapshots and objects have gone.
fn remove(ours: &Ours, backups: &[String]) -> Result<()> {
    let begun = Instant::now();
    for backup in backups {
        ours.send("DELETE", &format!("/api/backup/{backup}/"), None)?;
    }
    let left = |path: &str| -> Result<usize> {
        let listed = ours.send("GET", path, None)?;
        let names = listed.as_array().context("no list")?.iter();
        Ok(names.filter(|one| one["name"] != "kept").count())
    };
    while left("/api/backup/")? + left("/api/snapshot/")? > 0 {
        ensure!(begun.elapsed() < DEADLINE, "a backup is not removed");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
