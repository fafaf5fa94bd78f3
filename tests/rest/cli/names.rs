//! Commands about instances whose names do not exist, change, or are taken again.

use super::signed_in;
use crate::{Expected, has, until_true};
use wharf_tests::{Server, small, until};

/// Waits until a command looks at an instance after this moment.
fn looked(server: &Server) {
    let looks = || {
        let log = server.log();
        let looks = log
            .lines()
            .filter(|line| line.contains("method=\"GET\" route=\"/api/instance/{"));
        looks.count()
    };
    let before = looks();
    until_true("the command looks", || looks() > before);
}

#[test]
fn an_unknown_name_does_not_keep_the_others() {
    let (_server, api, shell) = signed_in("");
    for name in ["one", "two"] {
        shell.ok(&["create", name]).unwrap();
    }
    let removed = shell
        .run(&["rm", "--yes", "one", "no-such", "two"])
        .unwrap();
    assert_eq!(removed.code, Some(3), "{removed:?}");
    assert!(api.list().unwrap().is_empty(), "{removed:?}");
    has(&removed.stderr, "no-such: Instance not found.");
    has(&removed.stderr, "there is no instance no-such");
    has(&removed.stderr, "two is deleted.");
}

#[test]
fn a_wait_follows_the_instance_and_not_its_name() {
    let (server, api, shell) = signed_in("");
    shell.ok(&["create", "box", "--wait"]).unwrap();
    std::thread::scope(|scope| {
        let wait = ["wait", "box", "--for", "stopped", "--timeout", "60"];
        let wait = scope.spawn(move || shell.run(&wait).unwrap());
        // The first look is before the new name.
        looked(&server);
        let body = serde_json::json!({ "name": "crate" });
        api.patch("box", &body).is(200);
        let mut second = small("container");
        second["name"] = "box".into();
        api.create(&second).is(201);
        looked(&server);
        api.act("crate", "stop").is(200);
        let ended = wait.join().unwrap();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        has(&ended.stdout, "crate");
    });
}

#[test]
fn a_creation_waits_for_its_own_instance() {
    let (server, api, shell) = signed_in("ready_after_ms = 4000");
    std::thread::scope(|scope| {
        let create = scope.spawn(|| shell.run(&["create", "box", "--wait"]).unwrap());
        until("the instance exists", || Ok(api.list()?.pop())).unwrap();
        looked(&server);
        api.delete("box").is(204);
        let mut second = small("container");
        second["name"] = "box".into();
        api.create(&second).is(201);
        let ended = create.join().unwrap();
        assert_eq!(ended.code, Some(3), "{ended:?}");
        has(&ended.stderr, "box was deleted");
    });
}

#[test]
fn the_name_is_printed_before_the_wait() {
    let (_server, api, shell) = signed_in("ready_after_ms = 60000");
    let mut create = shell.command(&["create", "--wait", "-o", "json"]);
    let mut child = create
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = String::new();
    let stderr = child.stderr.take().unwrap();
    let mut lines = std::io::BufReader::new(stderr);
    let made = until("the instance exists", || Ok(api.list()?.pop())).unwrap();
    // The line comes at once, and not with the end of the wait.
    std::io::BufRead::read_line(&mut lines, &mut shown).unwrap();
    assert_eq!(child.try_wait().unwrap(), None, "{shown}");
    has(&shown, made["name"].as_str().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    api.delete(made["uuid"].as_str().unwrap()).is(204);
}
