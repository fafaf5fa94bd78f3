//! The life of instances.

use crate::given::{IMAGE, Rig, spec, target};
use driver_incus::context::Context;
use driver_incus::{
    delete, ensure, identity, inspect, lifecycle, probe as looks, survey as images,
};
use std::time::{Duration, Instant};
use wharf_guest::{DiskGrow, Error, Phase};

pub fn probe(rig: &mut Rig) {
    let health = rig.call(0, looks::probe).unwrap();
    assert!(health.version.starts_with("Incus 6"), "{health:?}");
    let features = &health.features;
    assert!(features.containers && features.live_resize && features.disk_limit);
    assert!(!features.vms && features.disk_grow == DiskGrow::Running);
    assert!(health.n_vcpus > 0 && health.mem_gib > 0 && health.disk_size_gib > 0);
    // The endpoint of another member.
    let (node, engine) = (rig.node(0), rig.engine(1));
    let error = looks::probe(&Context::new(&node, &engine).unwrap()).unwrap_err();
    assert!(
        format!("{error:?}").contains("settings.member"),
        "{error:?}"
    );
    // A client without the certificate's key would be refused by TLS; this one is not known.
    let mut stranger = rig.engine(0);
    stranger.endpoint = stranger.endpoint.replace("https", "http");
    assert!(looks::probe(&Context::new(&node, &stranger).unwrap()).is_err());
}

pub fn mark(rig: &mut Rig) {
    let read = |rig: &Rig, member| rig.call(member, identity::identify).unwrap();
    assert_eq!(read(rig, 0), None);
    rig.call(0, |ctx| identity::mark(ctx, "first")).unwrap();
    rig.call(0, |ctx| identity::mark(ctx, "second")).unwrap();
    assert_eq!(read(rig, 0).as_deref(), Some("first"));
    // Each member has a store of its own.
    assert_eq!(read(rig, 1), None);
    // The pool has lost its content, as that of a disk that is not mounted.
    let pool = rig.cluster.members()[0]
        .directory()
        .join("storage-pools/default");
    let volume = format!("custom/wharf_wharf-{}", crate::given::INSTALLATION);
    let moved = |from: &str, to: &str| {
        let member = &rig.cluster.members()[0];
        let status = member
            .inside("mv")
            .arg(pool.join(from))
            .arg(pool.join(to))
            .status();
        assert!(status.unwrap().success());
    };
    moved(&volume, "away");
    assert_eq!(read(rig, 0), None);
    moved("away", &volume);
    assert_eq!(read(rig, 0).as_deref(), Some("first"));
}

pub fn survey(rig: &mut Rig) {
    let wanted = [IMAGE.to_owned(), "localhost/wharf/none:1".to_owned()];
    let missing = |rig: &Rig| {
        let seen = rig.call(0, |ctx| images::look(ctx, &wanted));
        seen.unwrap().missing_images
    };
    assert_eq!(missing(rig), wanted);
    // An instance without an image can never come up.
    let report = rig.call(0, |ctx| ensure::ensure(ctx, &spec(1))).unwrap();
    assert!(
        matches!(&report.phase, Phase::Failed(why) if why.contains(IMAGE)),
        "{report:?}"
    );
    let admin = rig.cluster.members()[0].admin();
    wharf_testkit::incus::image::ensure(&admin, &rig.project.name, &["base"]).unwrap();
    assert_eq!(missing(rig), ["localhost/wharf/none:1"]);
}

pub fn creation(rig: &mut Rig) {
    let start = Instant::now();
    rig.make(0, &spec(1));
    eprintln!(
        "  the first instance, with the unpacking of its image: {:.1?}",
        start.elapsed()
    );
    let mut again = spec(1);
    again.may_exist = true;
    let report = rig.call(0, |ctx| ensure::ensure(ctx, &again)).unwrap();
    assert!(matches!(report.phase, Phase::Ready) && report.generation == 3);
    // The engine has the name, and the host believes that it is new.
    let report = rig.call(0, |ctx| ensure::ensure(ctx, &spec(1))).unwrap();
    assert!(matches!(report.phase, Phase::Ready), "{report:?}");
    again.hostname = "other".into();
    let error = rig.call(0, |ctx| ensure::ensure(ctx, &again)).unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error:?}");
    // Another member has it.
    let elsewhere = rig.phase(1, &spec(1));
    assert!(matches!(elsewhere, Phase::Elsewhere(_)), "{elsewhere:?}");
    assert!(rig.call(1, inspect::list).unwrap().is_empty());
    let list = rig.call(0, inspect::list).unwrap();
    assert!(matches!(list.as_slice(), [one] if one.tag.instance == spec(1).tag.instance));
}

pub fn stats(rig: &mut Rig) {
    let read = |rig: &Rig| {
        rig.call(0, |ctx| driver_incus::stats::stats(ctx, &spec(1).tag, true))
            .unwrap()
    };
    let before = read(rig);
    assert!(before.cpu_ns > 0 && before.mem_used_bytes > 0, "{before:?}");
    rig.run(
        &spec(1),
        "dd if=/dev/urandom of=/root/big bs=1M count=64 && sync",
    );
    let start = Instant::now();
    let mut after = read(rig);
    while after.disk_used_bytes < before.disk_used_bytes + (60 << 20) {
        assert!(start.elapsed() < Duration::from_secs(60), "{after:?}");
        std::thread::sleep(Duration::from_millis(500));
        after = read(rig);
    }
    assert!(after.cpu_ns > before.cpu_ns, "{before:?} {after:?}");
    let missing = rig.call(0, |ctx| driver_incus::stats::stats(ctx, &spec(9).tag, true));
    assert!(matches!(missing, Err(Error::NotFound)));
}

pub fn resize(rig: &mut Rig) {
    let mut wanted = target(&spec(1));
    wanted.size.n_vcpus = 2;
    wanted.size.mem_gib = 2;
    wanted.size.disk_size_gib = 3;
    let start = Instant::now();
    let change =
        |rig: &Rig, wanted: &_| rig.call(0, |ctx| driver_incus::resize::resize(ctx, wanted));
    let report = change(rig, &wanted).unwrap();
    eprintln!("  a live resize: {:.1?}", start.elapsed());
    assert!(matches!(report.phase, Phase::Ready), "{report:?}");
    // The engine moves instances to their CPUs in the background. On a busy machine it may read the old
    // number then, until the next instance starts or stops.
    let begun = Instant::now();
    let has_two = |rig: &Rig| rig.run(&spec(1), "nproc").trim() == "2";
    while !has_two(rig) && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(100));
    }
    if !has_two(rig) {
        eprintln!("  the engine has missed the new number of CPUs");
        rig.make(0, &spec(3));
        crate::failures::remove(rig, 0, 3);
    }
    while !has_two(rig) {
        assert!(begun.elapsed() < Duration::from_secs(90));
        std::thread::sleep(Duration::from_millis(100));
    }
    // The disk takes more than before, and less than too much.
    let fill = |count: u32| {
        let command = format!(
            "dd if=/dev/urandom of=/root/fill bs=1M count={count} 2>&1; sync; stat -c %s /root/fill; rm /root/fill"
        );
        rig.run(&spec(1), &command)
    };
    assert!(fill(2300).contains("2411724800"));
    assert!(fill(3300).contains("quota exceeded"));
    // More memory is in use than the new size has.
    rig.run(&spec(1), "head -c 1200M /dev/zero >/dev/shm/x");
    wanted.size.mem_gib = 1;
    std::thread::sleep(Duration::from_secs(9));
    let error = change(rig, &wanted).unwrap_err();
    assert!(
        matches!(&error, Error::Invalid(wrong) if wrong.field == "mem_gib"),
        "{error:?}"
    );
    let present = rig.cluster.members()[0].ask(
        "GET",
        &format!(
            "/1.0/instances/{}?project=wharf",
            driver_incus::names::instance(crate::given::INSTALLATION, &spec(1).tag)
        ),
        None,
    );
    assert_eq!(present.unwrap()["config"]["limits.memory"], "2GiB");
    rig.run(&spec(1), "rm /dev/shm/x");
}

pub fn stop_and_start(rig: &mut Rig) {
    let stop = |rig: &Rig| {
        rig.call(0, |ctx| lifecycle::stop(ctx, &target(&spec(1)), 10_000))
            .unwrap()
    };
    let start = Instant::now();
    assert!(matches!(stop(rig).phase, Phase::Stopped(_)));
    eprintln!("  a stop with grace: {:.1?}", start.elapsed());
    assert!(
        start.elapsed() < Duration::from_secs(8),
        "init has not ended by itself"
    );
    assert!(matches!(stop(rig).phase, Phase::Stopped(_)));
    // The metrics are some seconds old.
    let begun = Instant::now();
    loop {
        let list = rig.call(0, inspect::list).unwrap();
        if matches!(list[0].phase, Phase::Stopped(_)) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{list:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
    let mut again = spec(1);
    again.may_exist = true;
    let report = rig.call(0, |ctx| ensure::ensure(ctx, &again)).unwrap();
    assert!(
        matches!(report.phase, Phase::Stopped(_)),
        "ensure never starts what ran"
    );
    for _ in 0..2 {
        let report = rig
            .call(0, |ctx| lifecycle::start(ctx, &target(&spec(1))))
            .unwrap();
        assert!(
            matches!(report.phase, Phase::Booting | Phase::Ready),
            "{report:?}"
        );
    }
    rig.await_banner(0, &spec(1));
    // An instance ends itself.
    rig.run(&spec(1), "poweroff");
    let begun = Instant::now();
    while !matches!(rig.phase(0, &spec(1)), Phase::Stopped(_)) {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(100));
    }
    let remove = |rig: &Rig| {
        rig.call(0, |ctx| delete::delete(ctx, &target(&spec(1))))
            .unwrap()
    };
    assert!(matches!(remove(rig).phase, Phase::Absent));
    assert!(matches!(remove(rig).phase, Phase::Absent));
    assert!(matches!(stop(rig).phase, Phase::Absent));
    let error = rig
        .call(0, |ctx| lifecycle::start(ctx, &target(&spec(1))))
        .unwrap_err();
    assert!(matches!(error, Error::NotFound));
    assert!(rig.call(0, inspect::list).unwrap().is_empty());
}

pub fn many_at_once(rig: &mut Rig) {
    let rig: &Rig = rig;
    std::thread::scope(|scope| {
        for n in 11..19 {
            scope.spawn(move || rig.make(0, &spec(n)));
        }
    });
    assert_eq!(rig.call(0, inspect::list).unwrap().len(), 8);
    std::thread::scope(|scope| {
        for n in 11..19 {
            let gone = |phase: &Phase| matches!(phase, Phase::Absent);
            scope.spawn(move || {
                rig.wait_for(0, &spec(n).tag, gone, |ctx| {
                    delete::delete(ctx, &target(&spec(n)))
                });
            });
        }
    });
    assert!(rig.call(0, inspect::list).unwrap().is_empty());
}
