//! A faulty driver for the tests of the plugin runtime. The setting `mode` of its node selects the
//! fault of `probe`.

use serde::Deserialize;
use std::net::TcpStream;
use std::time::Duration;
use wharf_guest::{
    DiskGrow, Driver, EngineError, Error, Features, Health, HostEngine, NamedRequest, Node,
    Observed, Phase, Report, SnapshotKind, Spec, Tag, Target, Usage, VolumeContent, log,
};

#[derive(Deserialize)]
struct Settings {
    mode: String,
}

/// The driver.
#[derive(Debug)]
pub struct Faulty;

impl Driver for Faulty {
    fn engine_kind() -> String {
        "docker".to_owned()
    }

    fn probe(node: &Node) -> Result<Health, Error> {
        let settings: Settings = wharf_guest::settings(node)?;
        if settings.mode == "hint" {
            // Opens a connection, if there is an engine.
            drop(NamedRequest::new("info").send(&HostEngine));
            // Returns a longer probe cache each time, up to one that exceeds the limit.
            return Ok(Health {
                hint: "x".repeat((node.hint.len() + 1).max(1023)),
                ..healthy(node.hint.len().to_string())
            });
        }
        Ok(healthy(match settings.mode.as_str() {
            "spin" => spin(),
            "wait" => {
                std::thread::sleep(Duration::from_secs(3600));
                String::new()
            }
            "hog" => hog(),
            "panic" => panic_now(),
            "chatter" => chatter(),
            "huge" => "x".repeat(32 << 20),
            "escape" => escape(),
            "roam" => roam(),
            _ => "well".to_owned(),
        }))
    }

    fn ensure(_: &Node, spec: &Spec) -> Result<Report, Error> {
        Ok(ready(spec.generation))
    }

    /// Answers with a wrong generation.
    fn start(_: &Node, target: &Target) -> Result<Report, Error> {
        Ok(ready(target.generation.wrapping_sub(1)))
    }

    fn stop(_: &Node, target: &Target, _: u32) -> Result<Report, Error> {
        Ok(ready(target.generation))
    }

    fn resize(_: &Node, target: &Target) -> Result<Report, Error> {
        Ok(ready(target.generation))
    }

    fn delete(_: &Node, target: &Target) -> Result<Report, Error> {
        Ok(ready(target.generation))
    }

    fn inspect(_: &Node, _: &Tag) -> Result<Report, Error> {
        Ok(ready(0))
    }

    /// Rows with invalid instance ids.
    fn list(_: &Node) -> Result<Vec<Observed>, Error> {
        let row = |instance: &str| Observed {
            tag: Tag {
                instance: instance.to_owned(),
                incarnation: 1,
            },
            phase: Phase::Failed("\u{1b}[31m\n".repeat(1000)),
        };
        Ok(vec![
            row("nobody"),
            row("0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f"),
        ])
    }

    fn stats(_: &Node, _: &Tag, _: bool) -> Result<Usage, Error> {
        Err(Error::Other("\0".repeat(100_000)))
    }
}

wharf_guest::export!(Faulty: Driver);

fn spin() -> String {
    let mut n = 0_u64;
    loop {
        n = std::hint::black_box(n).wrapping_add(1);
    }
}

fn hog() -> String {
    let mut kept = Vec::new();
    loop {
        kept.push(vec![1_u8; 1 << 20]);
        std::hint::black_box(&kept);
    }
}

#[expect(clippy::panic, reason = "the fault is a panic")]
fn panic_now() -> String {
    panic!("on purpose")
}

fn chatter() -> String {
    for n in 0..10_000 {
        log!(Info, "line {n}\u{1b}[2J of many {}", "x".repeat(10_000));
    }
    "well".to_owned()
}

/// Tries to leave the sandbox by other ways than the engine.
fn escape() -> String {
    let found = [
        std::env::vars().next().is_some(),
        std::env::args().count() > 1,
        std::fs::read("/etc/passwd").is_ok(),
        std::fs::read_dir("/").is_ok(),
        std::fs::write("/tmp/faulty", "x").is_ok(),
        TcpStream::connect("127.0.0.1:22").is_ok(),
        std::net::UdpSocket::bind("127.0.0.1:0").is_ok(),
        std::io::stdin()
            .read_line(&mut String::new())
            .is_ok_and(|n| n > 0),
    ];
    format!("{found:?}")
}

/// Requests data of other instances from the engine.
fn roam() -> String {
    let calls = [
        NamedRequest::new("events"),
        NamedRequest::new("/containers/json?all=true"),
        NamedRequest::new("read").with("container", "postgres"),
        NamedRequest::new("info").with("path", "/info/../events"),
        NamedRequest::new(""),
    ];
    let is_sent = |request: &&NamedRequest| {
        !matches!(request.send(&HostEngine), Err(EngineError::Refused(_)))
    };
    let passed = calls.iter().filter(is_sent).count();
    let post = NamedRequest::new("delete").send(&HostEngine);
    format!("{passed} passed, {post:?}")
}

fn healthy(version: String) -> Health {
    Health {
        version,
        features: Features {
            containers: true,
            vms: false,
            live_resize: false,
            disk_grow: DiskGrow::No,
            disk_limit: false,
            gpus: false,
            stats: false,
            network: true,
            kvm: false,
            volumes: false,
            late_attach: false,
            snapshots: SnapshotKind::None,
            content: false,
            volume_content: VolumeContent::None,
        },
        n_vcpus: 0,
        mem_gib: 0,
        disk_size_gib: 0,
        gpus: Vec::new(),
        boot_id: String::new(),
        hint: String::new(),
    }
}

fn ready(generation: u64) -> Report {
    Report {
        generation,
        phase: Phase::Ready,
        again_ms: None,
    }
}
