//! Plugins that exhaust resources: each fails its own call, and other requests are served.

use crate::engine::{RecordingEngine, nowhere};
use crate::fixtures::Plugins;
use crate::{create_on, logged, server, uuid};
use serde_json::json;
use std::time::{Duration, Instant};
use wharf_tests::{Api, until};

/// Far above the latency of a healthy node, far below the duration of a hostile call.
const STILL_SERVED: Duration = Duration::from_millis(1500);
const ROUNDS: usize = 40;

/// Durations of one kind of request, sorted.
struct Times(Vec<Duration>);

impl Times {
    fn at(&self, part: f64) -> Duration {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index"
        )]
        let index = ((self.0.len() - 1) as f64 * part) as usize;
        self.0[index]
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |part| self.at(part).as_secs_f64() * 1e3;
        write!(f, "{:.1} / {:.1} / {:.1} ms", ms(0.5), ms(0.9), ms(1.0))
    }
}

/// Measures GETs, and creates until running, on the healthy node.
fn latency(api: &Api) -> (Times, Times) {
    let (mut gets, mut creates) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let created = api.small_container().unwrap();
        until("the instance runs", || {
            let asked = Instant::now();
            let now = api.instance(uuid(&created))?.expect(200)?;
            gets.push(asked.elapsed());
            Ok((now["state"] == "running").then_some(()))
        })
        .unwrap();
        creates.push(begin.elapsed());
        api.delete(uuid(&created)).unwrap().expect(204).unwrap();
    }
    gets.sort_unstable();
    creates.sort_unstable();
    (Times(gets), Times(creates))
}

#[test]
fn exhaustion_fails_its_own_call_only() {
    let plugins = Plugins::driver();
    let (alone, api) = server(&plugins, &[]);
    latency(&api);
    let (gets_alone, creates_alone) = latency(&api);
    alone.finish().unwrap();

    let silent = RecordingEngine::silent();
    let socket = silent.socket();
    let says = [
        ("probe-loops", "more than 300 ms of CPU time"),
        ("probe-traps", "on purpose"),
        ("probe-recurses", "trap: wasm trap"),
        ("probe-eats", "more than 32 MiB of memory"),
        ("probe-sleeps", "no answer within 2000 ms"),
        ("probe-waits", "no answer within 2000 ms"),
        ("probe-boasts", "nonsense answer"),
        // Its CPU time is exhausted first, or the host's limit of rows.
        ("list-is-endless", "plugin fault"),
    ];
    let mut modes: Vec<_> = says.iter().map(|(mode, _)| (*mode, nowhere())).collect();
    for (mode, at) in &mut modes {
        if *mode == "probe-waits" {
            *at = &socket;
        }
    }
    modes.push(("probe-babbles", nowhere()));
    let (server, api) = server(&plugins, &modes);
    for (mode, words) in says {
        let node = format!("node={mode}");
        until(&format!("{mode}: {words}"), || {
            Ok(logged(&server, &[&node, "out of reach", words]).then_some(()))
        })
        .unwrap();
    }
    let (gets, creates) = latency(&api);
    println!(
        "median / p90 / max beside {} hostile nodes, and without: GET {gets}, {gets_alone}; \
         create until running {creates}, {creates_alone}",
        modes.len()
    );
    // A busy machine is slow without the hostile nodes too.
    let bound = |alone: &Times| STILL_SERVED.max(5 * alone.at(0.5));
    assert!(gets.at(0.5) < bound(&gets_alone) && creates.at(0.5) < bound(&creates_alone));
    assert!(!silent.asked().is_empty(), "the driver sent no request");
    // The log of messages and refused requests is bounded per call.
    let babble = |words: &str| {
        let log = server.log();
        let lines = log
            .lines()
            .filter(|l| l.contains("probe-babbles") && l.contains(words));
        lines.count()
    };
    let refused = babble("a driver's request was not sent");
    let calls = babble("last_logged=true");
    assert!(
        calls > 0 && refused <= 20 * (calls + 1),
        "{refused} lines of {calls} calls"
    );
    assert!(server.log().lines().all(|line| line.len() < 6000));
    server.finish().unwrap();
}

#[test]
fn an_instance_of_a_plugin_that_fails_is_in_error_and_can_be_deleted() {
    let plugins = Plugins::driver();
    let says = [
        ("ensure-loops", "more than 300 ms of CPU time"),
        ("ensure-traps", "on purpose"),
        ("ensure-recurses", "trap: wasm trap"),
        ("ensure-eats", "more than 32 MiB of memory"),
    ];
    let modes: Vec<_> = says.iter().map(|(mode, _)| (*mode, nowhere())).collect();
    let (server, api) = server(&plugins, &modes);
    let begin = Instant::now();
    let made = says.map(|(mode, _)| create_on(&api, mode));
    let well = api.small_container().unwrap();
    api.wait_for(uuid(&well), "running").unwrap();
    for (instance, (mode, words)) in made.iter().zip(says) {
        assert_eq!(instance["gpu_model"], json!(mode));
        api.wait_for(uuid(instance), "error").unwrap();
        let id = format!("instance={}", uuid(instance));
        assert!(logged(&server, &[&id, words]), "{mode}: {}", server.log());
    }
    // The deadline is 4 s; a call in progress may outlast it.
    assert!(
        begin.elapsed() < Duration::from_secs(60),
        "{:?}",
        begin.elapsed()
    );
    for instance in &made {
        api.delete(uuid(instance)).unwrap().expect(204).unwrap();
        assert_eq!(api.instance(uuid(instance)).unwrap().status, 404);
    }
    assert_eq!(api.list().unwrap().len(), 1);
    server.finish().unwrap();
}
