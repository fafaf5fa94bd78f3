//! `ensure`: the objects that it creates, and its continuation after an interruption.

use crate::calls::Calls;
use crate::fake::given::{node, spec, target};
use crate::fake::{Break, Fake};
use driver_docker::digest;
use serde_json::{Value, json};
use wharf_guest::{Error, Health, Phase, Report, Spec};

fn ensure(fake: &Fake, spec: &Spec) -> Result<Report, Error> {
    ensure_with(fake, "{}", spec)
}

fn ensure_with(fake: &Fake, settings: &str, spec: &Spec) -> Result<Report, Error> {
    Calls::new(&node(settings), fake).ensure(spec)
}

fn phase(report: Result<Report, Error>) -> Phase {
    report.unwrap().phase
}

#[test]
fn a_creation_has_its_digest_its_view_and_the_measured_image() {
    let fake = Fake::new();
    assert!(matches!(phase(ensure(&fake, &spec(1))), Phase::Booting));
    let world = fake.world.borrow();
    let body = &world.containers["wharf-00000000-0000-4000-8000-000000000001"].body;
    assert_eq!(body["Labels"]["io.wharf.spec"], digest::of(&spec(1)));
    assert_eq!(body["Labels"]["io.wharf.view"], "own");
    assert_eq!(body["HostConfig"]["Mounts"], mounts());
    // 20 GiB of its own, the counted image, and the overhead of the image's files.
    assert_eq!(body["HostConfig"]["StorageOpt"]["size"], "21088M");
    assert!(world.networks.contains_key("wharf-n0a500000555"));
}

fn mounts() -> Value {
    let files = [
        "/proc/cpuinfo",
        "/proc/diskstats",
        "/proc/loadavg",
        "/proc/meminfo",
        "/proc/stat",
        "/proc/swaps",
        "/proc/uptime",
        "/sys/devices/system/cpu/online",
    ];
    files
        .map(|file| {
            let source = format!("/var/lib/lxcfs{file}");
            json!({ "Type": "bind", "Source": source, "Target": file, "ReadOnly": true })
        })
        .into_iter()
        .collect()
}

#[test]
fn a_node_without_lxcfs_shows_its_own_size() {
    let fake = Fake::new();
    let plain = node("{}");
    let calls = Calls::new(&plain, &fake);
    let shown = || calls.is_shown().unwrap();
    assert_eq!(shown(), None);
    ensure(&fake, &spec(1)).unwrap();
    assert_eq!(shown(), Some(true));
    calls.stop(&target(&spec(1)), 0).unwrap();
    fake.world.borrow_mut().lxcfs = false;
    // It was created with lxcfs, and starts once that runs again.
    let Err(Error::Other(why)) = calls.start(&target(&spec(1))) else {
        panic!("it starts")
    };
    assert!(why.contains("lxcfs does not run on the node"), "{why}");
    assert!(matches!(phase(ensure(&fake, &spec(2))), Phase::Booting));
    assert_eq!(shown(), Some(false));
    fake.world.borrow_mut().lxcfs = true;
    ensure_with(&fake, r#"{"lxcfs":"off"}"#, &spec(3)).unwrap();
    let world = fake.world.borrow();
    let made = |n: u8| {
        let name = format!("wharf-00000000-0000-4000-8000-0000000000{n:02}");
        world.containers[&name].body["HostConfig"]["Mounts"].clone()
    };
    assert_eq!(
        [made(1), made(2), made(3)],
        [mounts(), Value::Null, Value::Null]
    );
}

#[test]
fn an_engine_that_cannot_mount_lxcfs_shows_the_nodes_size() {
    let fake = Fake::new();
    fake.world.borrow_mut().locked = true;
    assert!(matches!(phase(ensure(&fake, &spec(1))), Phase::Booting));
    let plain = node("{}");
    let calls = Calls::new(&plain, &fake);
    assert_eq!(calls.is_shown().unwrap(), Some(false));
    assert_eq!(fake.world.borrow().containers.len(), 1);
    // Another engine of that kind can.
    let able = Fake::new();
    ensure_with(&able, r#"{"userns":"auto"}"#, &spec(1)).unwrap();
    let calls = Calls::new(&plain, &able);
    assert_eq!(calls.is_shown().unwrap(), Some(true));
}

#[test]
fn settings_reach_the_container() {
    let fake = Fake::new();
    let image = "registry.example/w/base:1";
    fake.world.borrow_mut().images.insert(image.into());
    let settings = r#"{"image_prefix":"registry.example/w/","pids_limit":99,"userns":"auto"}"#;
    ensure_with(&fake, settings, &spec(1)).unwrap();
    let world = fake.world.borrow();
    let body = &world.containers.values().next().unwrap().body;
    assert_eq!(body["Image"], image);
    assert_eq!(body["HostConfig"]["PidsLimit"], 99);
    assert_eq!(body["HostConfig"]["UsernsMode"], "auto");
}

#[test]
fn an_uncounted_image_adds_nothing_to_the_disk_limit() {
    let fake = Fake::new();
    fake.world.borrow_mut().storage = "overlay2";
    ensure(&fake, &spec(1)).unwrap();
    let world = fake.world.borrow();
    let body = &world.containers.values().next().unwrap().body;
    assert_eq!(body["HostConfig"]["StorageOpt"]["size"], "20G");
}

#[test]
fn simple_quotas_count_metadata_and_no_image() {
    let fake = Fake::new();
    ensure_with(&fake, r#"{"btrfs_quotas":"simple"}"#, &spec(1)).unwrap();
    let world = fake.world.borrow();
    let body = &world.containers.values().next().unwrap().body;
    assert_eq!(body["HostConfig"]["StorageOpt"]["size"], "20544M");
}

#[test]
fn ensure_continues_after_any_failed_call() {
    let mut broken = 0;
    for nth in 0.. {
        for when in [Break::Before, Break::After] {
            let fake = Fake::new();
            fake.break_call(nth, when);
            let first = ensure(&fake, &spec(1));
            if !fake.broke() {
                assert!(
                    nth > 4 && broken > 8,
                    "create, start, network, files and start break"
                );
                return;
            }
            broken += 1;
            assert!(matches!(first, Err(Error::Unreachable(_))), "{first:?}");
            let report = ensure(&fake, &spec(1)).unwrap();
            assert!(
                matches!(report.phase, Phase::Booting | Phase::Ready),
                "{nth} {when:?}"
            );
            assert_eq!(report.generation, 3);
            let world = fake.world.borrow();
            assert!(
                world.started_bare.is_empty(),
                "{nth} {when:?}: started without its files"
            );
            assert_eq!((world.containers.len(), world.networks.len()), (1, 1));
            assert!(world.containers.values().all(|container| container.running));
        }
    }
}

#[test]
fn a_container_renamed_during_its_creation_is_found() {
    let fake = Fake::new();
    fake.world.borrow_mut().renamed_to = Some("pets");
    assert!(matches!(phase(ensure(&fake, &spec(1))), Phase::Booting));
    let world = fake.world.borrow();
    assert_eq!(world.containers.len(), 1);
    assert!(world.containers["pets"].running && world.started_bare.is_empty());
}

#[test]
fn ensure_never_starts_a_container_that_ran() {
    let fake = Fake::new();
    let spec = spec(1);
    ensure(&fake, &spec).unwrap();
    assert!(matches!(phase(ensure(&fake, &spec)), Phase::Ready));
    Calls::new(&node("{}"), &fake)
        .stop(&target(&spec), 1000)
        .unwrap();
    assert!(matches!(
        phase(ensure(&fake, &spec)),
        Phase::Stopped(Some(_))
    ));
    assert!(
        fake.world
            .borrow()
            .containers
            .values()
            .all(|container| !container.running)
    );
}

#[test]
fn a_container_outlives_its_image() {
    let fake = Fake::new();
    ensure(&fake, &spec(1)).unwrap();
    fake.world.borrow_mut().images.clear();
    assert!(matches!(phase(ensure(&fake, &spec(1))), Phase::Ready));
}

#[test]
fn another_spec_under_the_same_tag_is_a_conflict() {
    let fake = Fake::new();
    ensure(&fake, &spec(1)).unwrap();
    let mut other = spec(1);
    other.published[0].node_port += 1;
    assert!(matches!(ensure(&fake, &other), Err(Error::Conflict(_))));
    // The host removes the container of an earlier incarnation.
    let mut next = spec(1);
    next.tag.incarnation = 2;
    assert!(matches!(ensure(&fake, &next), Err(Error::RetryLater(_))));
    let mut earlier = spec(1);
    earlier.tag.incarnation = 0;
    assert!(matches!(ensure(&fake, &earlier), Err(Error::Conflict(_))));
    let mut other = node("{}");
    other.installation = "other".into();
    let other = Calls::new(&other, &fake);
    assert!(matches!(other.ensure(&spec(1)), Err(Error::Conflict(_))));
    let mut resized = spec(1);
    resized.size.mem_gib = 8;
    assert!(
        matches!(phase(ensure(&fake, &resized)), Phase::Ready),
        "a size must be free to change"
    );
}

#[test]
fn a_missing_image_is_pulled() {
    let fake = Fake::new();
    fake.world.borrow_mut().images.clear();
    let report = ensure(&fake, &spec(1)).unwrap();
    assert!(matches!(report.phase, Phase::Pulling(text) if text == "Downloading x"));
    assert!(report.again_ms.is_some());
    assert!(matches!(phase(ensure(&fake, &spec(1))), Phase::Booting));
}

#[test]
fn an_image_that_cannot_be_pulled_is_final() {
    let fake = Fake::new();
    fake.world.borrow_mut().images.clear();
    fake.world.borrow_mut().pull = Some("access denied");
    let Phase::Failed(reason) = phase(ensure(&fake, &spec(1))) else {
        panic!()
    };
    assert!(reason.contains("localhost/wharf/base:1") && reason.contains("access denied"));
    let mut none = spec(1);
    none.blueprint.images.clear();
    assert!(matches!(phase(ensure(&fake, &none)), Phase::Failed(_)));
}

/// A creation with this image.
fn with_image(image: &str) -> Spec {
    let mut spec = spec(1);
    spec.blueprint.images[0].reference = image.to_owned();
    spec
}

#[test]
fn a_registry_that_does_not_answer_is_asked_again() {
    let fake = Fake::new();
    let spec = with_image("registry.example/team/tools:1");
    fake.world.borrow_mut().pull = Some("dial tcp 192.0.2.1:443: i/o timeout");
    let Err(Error::RetryLater(pause_ms)) = ensure(&fake, &spec) else {
        panic!("the host tries again")
    };
    assert!(pause_ms >= 5_000, "{pause_ms}");
    assert!(matches!(phase(ensure(&fake, &spec)), Phase::Pulling(_)));
    assert!(matches!(phase(ensure(&fake, &spec)), Phase::Booting));

    let fake = Fake::new();
    fake.world.borrow_mut().pull = Some("unauthorized: authentication required");
    let Phase::Failed(reason) = phase(ensure(&fake, &spec)) else {
        panic!("a failure that lasts")
    };
    assert!(reason.contains("[[registry]]"), "{reason}");
}

#[test]
fn one_tag_is_pulled_if_the_name_has_none() {
    let fake = Fake::new();
    let spec = with_image("registry.example:5000/team/tools");
    assert!(matches!(phase(ensure(&fake, &spec)), Phase::Pulling(_)));
    drop(ensure(&fake, &spec));
    let images = &fake.world.borrow().images;
    assert!(
        images.contains("registry.example:5000/team/tools:latest"),
        "{images:?}"
    );
}

#[test]
fn a_missing_disk_limit_fails_only_if_required() {
    let fake = Fake::new();
    fake.world.borrow_mut().disk_limits = false;
    let must = ensure_with(&fake, r#"{"disk_limit":"on"}"#, &spec(1));
    assert!(matches!(phase(must), Phase::Failed(_)));
    assert!(matches!(phase(ensure(&fake, &spec(1))), Phase::Booting));
}

#[test]
fn a_limit_is_omitted_only_after_the_engine_has_refused_it() {
    let fake = Fake::new();
    // Whether the creation succeeded, and the number of limits that the engine refused.
    let refusals = |settings, n| {
        let before = fake.world.borrow().refused_limits;
        let made = matches!(
            phase(ensure_with(&fake, settings, &spec(n))),
            Phase::Booting
        );
        (made, fake.world.borrow().refused_limits - before)
    };
    fake.world.borrow_mut().disk_limits = false;
    assert_eq!(refusals("{}", 1), (true, 1));
    assert_eq!(refusals(r#"{"disk_limit":"on"}"#, 2), (false, 1));
    assert_eq!(refusals(r#"{"disk_limit":"off"}"#, 3), (true, 0));
    fake.world.borrow_mut().disk_limits = true;
    assert_eq!(refusals("{}", 4), (true, 0));
    let world = fake.world.borrow();
    let limit = |n: u8| {
        let name = format!("wharf-00000000-0000-4000-8000-0000000000{n:02}");
        world.containers[&name].body["HostConfig"]["StorageOpt"].clone()
    };
    assert!(limit(1).is_null() && limit(3).is_null());
    assert!(limit(4)["size"].is_string());
}

fn probed(fake: &Fake, settings: &str) -> Result<Health, Error> {
    Calls::new(&node(settings), fake).probe()
}

#[test]
fn a_required_limit_is_refused_on_a_store_that_ignores_it() {
    let fake = Fake::new();
    fake.world.borrow_mut().storage_says = ("driver-type", "io.containerd.snapshotter.v1");
    let Err(Error::Unsupported(why)) = probed(&fake, r#"{"disk_limit":"on"}"#) else {
        panic!("the engine counts as one with disk limits")
    };
    assert!(why.starts_with("settings.disk_limit: "), "{why}");
    assert!(!probed(&fake, "{}").unwrap().features.disk_limit);
    fake.world.borrow_mut().storage_says = ("Backing Filesystem", "btrfs");
    assert!(probed(&fake, r#"{"disk_limit":"on"}"#).is_ok());
}

#[test]
fn unsupported_specifications_are_errors() {
    let fake = Fake::new();
    let mut gpu = spec(1);
    gpu.gpu_devices.push("gpu0".into());
    assert!(matches!(ensure(&fake, &gpu), Err(Error::Unsupported(_))));
    assert_eq!(fake.calls.get(), 0);
}
