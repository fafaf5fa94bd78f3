//! Moves of content to the engine of another node.

use crate::calls::Calls;
use crate::fake::given::{node, spec, target, vm};
use crate::fake::{Break, Container, Fake, Moved};
use serde_json::json;
use wharf_guest::{Error, Network, Phase, Report, Spec, Tag};

const NAME: &str = "wharf-00000000-0000-4000-8000-000000000001";
const PART: &str = "wharf-00000000-0000-4000-8000-000000000001-part";
const FILES: [&str; 2] = ["/home/user/a", "/home/user/b"];
/// The incarnation of the copy.
const COPY: u64 = 1_795_000_000_000;

/// Two nodes; the first has an instance.
struct Pair {
    old: Fake,
    new: Fake,
}

impl Pair {
    /// The instance is stopped, and the copy is complete at the next look.
    fn new() -> Self {
        let running = Self::running();
        let node = node("{}");
        let calls = Calls::new(&node, &running.old);
        calls.stop(&target(&spec(1)), 0).unwrap();
        running
    }

    fn running() -> Self {
        let old = Fake::new();
        Calls::new(&node("{}"), &old).ensure(&spec(1)).unwrap();
        let mut world = old.world.borrow_mut();
        world.containers.get_mut(NAME).unwrap().files = FILES.map(str::to_owned).into();
        drop(world);
        let new = Fake::beside(&old);
        new.world.borrow_mut().moved = Some(Moved::All);
        Self { old, new }
    }

    fn offer(&self) -> Result<Report, Error> {
        Calls::new(&node("{}"), &self.old).offer(&target(&spec(1)))
    }

    fn fetch(&self) -> Result<Report, Error> {
        Calls::new(&node("{}"), &self.new).fetch(&copied())
    }

    /// Acts as the host until the copy is complete. At no point does it run or count as the instance too early, or is
    /// content missing on the old node.
    fn carry(&self) -> Result<(), Error> {
        let node = node("{}");
        let calls = Calls::new(&node, &self.new);
        let offered = self.offer()?;
        assert!(matches!(offered.phase, Phase::Stopped(_)), "{offered:?}");
        for _ in 0..20 {
            let fetched = calls.fetch(&copied())?;
            assert_eq!(fetched.generation, copied().generation);
            let old = self.old.world.borrow();
            assert_eq!(old.containers[NAME].files, FILES);
            assert!(!old.containers[NAME].running);
            let new = self.new.world.borrow();
            assert!(new.containers.values().all(|one| !one.started));
            match fetched.phase {
                Phase::Elsewhere(_) => assert!(!new.containers.contains_key(NAME)),
                Phase::Stopped(None) => return Ok(()),
                other => panic!("{other:?}"),
            }
        }
        panic!("the copy does not end")
    }

    fn copy(&self) -> Container {
        let world = self.new.world.borrow();
        let names: Vec<_> = world.containers.keys().map(String::as_str).collect();
        assert_eq!(names, [NAME]);
        world.containers[NAME].clone()
    }

    /// Asserts that the new node has all of it, and that it starts.
    fn assert_moved(&self) {
        let node = node("{}");
        let calls = Calls::new(&node, &self.new);
        let copy = self.copy();
        assert_eq!(copy.files, FILES);
        assert!(!copy.started);
        assert_eq!(
            copy.body["Labels"]["io.wharf.incarnation"],
            COPY.to_string()
        );
        let seen = calls.inspect(&copied().tag).unwrap();
        assert!(matches!(seen.phase, Phase::Stopped(None)), "{seen:?}");
        // The answer may have been lost.
        let again = calls.fetch(&copied()).unwrap();
        assert!(matches!(again.phase, Phase::Stopped(None)), "{again:?}");
        let started = calls.start(&target(&copied())).unwrap();
        assert!(matches!(started.phase, Phase::Booting), "{started:?}");
        let copy = self.copy();
        assert!(copy.running && copy.files == FILES);
        assert!(self.new.world.borrow().started_bare.is_empty());
        let ready = calls.ensure(&copied()).unwrap();
        assert!(matches!(ready.phase, Phase::Ready), "{ready:?}");
    }
}

/// The specification of the copy, with an incarnation and a network of its own.
fn copied() -> Spec {
    let of_old = spec(1);
    Spec {
        tag: Tag {
            incarnation: COPY,
            ..of_old.tag
        },
        network: Network {
            id: "owner1".into(),
            subnet: "10.90.0.0/28".into(),
            gateway: "10.90.0.1".into(),
            address: "10.90.0.5".into(),
        },
        may_exist: true,
        ..of_old
    }
}

#[test]
fn the_content_moves_whole_and_the_copy_starts() {
    let pair = Pair::new();
    pair.carry().unwrap();
    pair.assert_moved();
    let copy = pair.copy();
    let address = &copy.body["NetworkingConfig"]["EndpointsConfig"];
    assert!(address.to_string().contains("10.90.0.5"), "{address}");
    assert_eq!(copy.body["HostConfig"]["StorageOpt"]["size"], "21088M");
    // The old disk is the host's to remove.
    let node = node("{}");
    let calls = Calls::new(&node, &pair.old);
    calls.delete(&target(&spec(1))).unwrap();
    assert!(pair.old.world.borrow().containers.is_empty());
    assert!(matches!(pair.offer(), Err(Error::NotFound)));
}

/// As after kill -9, or with the host's transfer in progress: another offer follows each failure.
#[test]
fn a_copy_completes_after_any_failed_call() {
    for (of_new, killed, when) in [
        (true, true, Break::Before),
        (true, true, Break::After),
        (true, false, Break::Before),
        (true, false, Break::After),
        (false, true, Break::Before),
    ] {
        for nth in 0.. {
            let pair = Pair::new();
            let broken = if of_new { &pair.new } else { &pair.old };
            broken.break_call(nth, when);
            let mut rounds = 0;
            while pair.carry().is_err() {
                if killed {
                    pair.new.world.borrow_mut().transfer = None;
                    pair.new.offer.take();
                }
                rounds += 1;
                assert!(rounds < 10, "{when:?} {nth}");
            }
            let has_broken = broken.broke();
            broken.break_call(usize::MAX / 2, when);
            pair.assert_moved();
            if !has_broken {
                assert!(nth > if of_new { 8 } else { 1 }, "{nth} calls");
                break;
            }
        }
    }
}

#[test]
fn a_running_one_is_reported_and_not_offered() {
    let pair = Pair::running();
    let report = pair.offer().unwrap();
    assert!(matches!(report.phase, Phase::Ready), "{report:?}");
    assert!(pair.old.offer.borrow().is_none());
    assert!(pair.old.world.borrow().containers[NAME].running);
}

#[test]
fn content_on_another_volume_is_not_offered() {
    let pair = Pair::new();
    let mount = json!([{ "Name": "anonymous", "Destination": "/var/lib/x" }]);
    let mut world = pair.old.world.borrow_mut();
    world.containers.get_mut(NAME).unwrap().body["Mounts"] = mount;
    drop(world);
    let refused = pair.offer().unwrap_err();
    assert!(
        matches!(&refused, Error::Conflict(why) if why.contains("/var/lib/x")),
        "{refused:?}"
    );
    assert!(pair.old.offer.borrow().is_none());
}

#[test]
fn a_full_node_and_content_that_cannot_move_refuse_it_and_keep_nothing() {
    for moved in [Moved::Full, Moved::Immovable] {
        let pair = Pair::new();
        pair.new.world.borrow_mut().moved = Some(moved);
        let refused = pair.carry().unwrap_err();
        assert!(matches!(refused, Error::Unsupported(_)), "{refused:?}");
        assert!(pair.new.world.borrow().containers.is_empty());
        assert_eq!(pair.old.world.borrow().containers[NAME].files, FILES);
        let node = node("{}");
        let calls = Calls::new(&node, &pair.new);
        calls.delete(&target(&copied())).unwrap();
        let world = pair.new.world.borrow();
        assert!(world.containers.is_empty() && world.networks.is_empty());
        // It starts where it was.
        let calls = Calls::new(&node, &pair.old);
        calls.start(&target(&spec(1))).unwrap();
    }
}

#[test]
fn a_broken_copy_is_made_again() {
    let pair = Pair::new();
    pair.new.world.borrow_mut().moved = Some(Moved::Broke);
    let broke = pair.carry().unwrap_err();
    assert!(matches!(broke, Error::Unreachable(_)), "{broke:?}");
    assert!(pair.new.world.borrow().containers.is_empty());
    pair.new.world.borrow_mut().moved = Some(Moved::All);
    pair.carry().unwrap();
    pair.assert_moved();
}

#[test]
fn a_container_of_an_earlier_incarnation_is_waited_for() {
    let pair = Pair::new();
    let node = node("{}");
    let calls = Calls::new(&node, &pair.new);
    // An earlier move has left it.
    calls.ensure(&spec(1)).unwrap();
    pair.offer().unwrap();
    let waits = loop {
        match pair.fetch() {
            Ok(report) => assert!(matches!(report.phase, Phase::Elsewhere(_)), "{report:?}"),
            Err(error) => break error,
        }
    };
    assert!(matches!(waits, Error::RetryLater(_)), "{waits:?}");
    assert!(pair.new.world.borrow().containers[NAME].running);
    calls.delete(&target(&spec(1))).unwrap();
    assert_eq!(pair.new.world.borrow().containers.len(), 1);
    let moved = pair.fetch().unwrap();
    assert!(matches!(moved.phase, Phase::Stopped(None)), "{moved:?}");
    pair.assert_moved();
}

#[test]
fn a_fetch_waits_for_an_offer() {
    let pair = Pair::new();
    for _ in 0..2 {
        let waits = pair.fetch().unwrap_err();
        assert!(matches!(waits, Error::RetryLater(_)), "{waits:?}");
        assert!(pair.new.world.borrow().transfer.is_none());
    }
    pair.carry().unwrap();
    pair.assert_moved();
}

#[test]
fn a_node_without_the_image_pulls_it_first() {
    let pair = Pair::new();
    pair.new.world.borrow_mut().images.clear();
    pair.offer().unwrap();
    let pulls = pair.fetch().unwrap();
    assert!(
        matches!(&pulls.phase, Phase::Elsewhere(progress) if progress.contains("Downloading")),
        "{pulls:?}"
    );
    assert!(pair.old.offer.borrow().is_some(), "it is still offered");
    pair.carry().unwrap();
    pair.assert_moved();
}

#[test]
fn a_node_without_disk_limits_takes_a_copy_without_one() {
    let pair = Pair::new();
    pair.new.world.borrow_mut().disk_limits = false;
    pair.carry().unwrap();
    assert!(pair.copy().body["HostConfig"]["StorageOpt"].is_null());
    pair.assert_moved();
}

/// Some engines refuse its files only at the start of a container.
#[test]
fn an_incomplete_copy_is_not_the_instance_and_goes_with_its_transfer() {
    let pair = Pair::new();
    pair.new.world.borrow_mut().moved = None;
    pair.offer().unwrap();
    for _ in 0..3 {
        let report = pair.fetch().unwrap();
        assert!(matches!(report.phase, Phase::Elsewhere(_)), "{report:?}");
    }
    let node = node("{}");
    let calls = Calls::new(&node, &pair.new);
    let absent = calls.inspect(&copied().tag).unwrap();
    assert!(matches!(absent.phase, Phase::Absent), "{absent:?}");
    let started = calls.start(&target(&copied()));
    assert!(matches!(started, Err(Error::NotFound)), "{started:?}");
    // The host finds it, so that it can be removed after a failed move.
    let listed = calls.list().unwrap();
    assert!(matches!(&listed[..], [one] if one.tag.incarnation == COPY));
    let world = pair.new.world.borrow();
    assert!(world.containers.contains_key(PART) && world.transfer.is_some());
    drop(world);
    calls.delete(&target(&copied())).unwrap();
    let world = pair.new.world.borrow();
    assert!(world.containers.is_empty() && world.transfer.is_none());
}

#[test]
fn virtual_machines_and_podman_move_no_content() {
    let (fake, node) = (Fake::new(), node("{}"));
    let calls = Calls::new(&node, &fake);
    let refused = |answer: Result<Report, Error>, words: &str| {
        let refused = answer.unwrap_err();
        assert!(
            matches!(&refused, Error::Unsupported(why) if why.contains(words)),
            "{refused:?}"
        );
    };
    refused(calls.offer(&target(&vm(1))), "virtual machines");
    refused(calls.fetch(&vm(1)), "virtual machines");
    assert!(calls.probe().unwrap().features.content);
    fake.world.borrow_mut().podman = true;
    refused(calls.offer(&target(&spec(1))), "this engine");
    refused(calls.fetch(&copied()), "this engine");
    assert!(!calls.probe().unwrap().features.content);
    assert!(fake.world.borrow().containers.is_empty());
}
