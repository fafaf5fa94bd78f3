//! `wharf snapshot`, and snapshots in other commands.

use super::signed_in;
use crate::has;
use wharf_tests::{Ended, until};

fn refused(ended: &Ended, code: i32, text: &str) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    has(&ended.stderr, text);
}

#[test]
fn a_snapshot_is_taken_restored_cloned_and_removed() {
    let (_server, _, shell) = signed_in("");
    let run = |words: &str| shell.run(&words.split(' ').collect::<Vec<_>>()).unwrap();
    let ok = |words: &str| run(words).succeeded().unwrap();
    ok("create box --vcpus 2 --wait");
    // The time is told before, and the command waits for the end.
    let taken = ok("snapshot create box --name before");
    has(&taken.stderr, "The snapshot takes about ");
    has(
        &taken.stderr,
        "and box is not interrupted. Its 1 GiB cost about ",
    );
    has(&taken.stdout, "box/before  ready  1 GiB");
    refused(
        &run("snapshot create box --name before"),
        1,
        "NAME (name) is already taken",
    );
    refused(&run("snapshot create none"), 3, "Instance not found.");
    has(&ok("snapshot ls box").stdout, "box/before");
    let shown = ok("snapshot show box/before").stdout;
    has(&shown, "clonable                 true\n");
    has(&shown, "usd_per_hour ");
    refused(
        &run("snapshot show box/none"),
        3,
        "box has no snapshot none",
    );
    refused(&run("snapshot show none"), 3, "Snapshot not found.");

    refused(&run("snapshot restore box/before"), 2, "give --yes");
    refused(
        &run("snapshot restore box/before --yes"),
        1,
        "it must be exited",
    );
    ok("stop box");
    let mut terminal = shell
        .on_terminal("wharf snapshot restore box/before")
        .unwrap();
    terminal
        .wait_for("are lost. Type its name to confirm")
        .unwrap();
    terminal.type_in("bo\n").unwrap();
    terminal.wait_for("nothing is restored").unwrap();
    assert!(terminal.end().is_err());
    let restored = ok("snapshot restore box/before --snapshot-first --yes");
    has(&restored.stderr, "The snapshot takes about ");
    has(&restored.stderr, "and box starts only after it. Its ");
    has(
        &restored.stderr,
        "box is restored; `wharf restart box` starts it.",
    );
    has(&restored.stdout, "exited\n");
    assert_eq!(ok("snapshot ls box").stdout.lines().count(), 3);
    ok("restart box");

    let cloned = ok("snapshot clone box/before copy --wait");
    has(&cloned.stderr, "copy is created and starting.");
    has(&cloned.stdout, "n_vcpus                  2\n");
    let small = run("snapshot clone box/before --disk 9");
    refused(&small, 1, "--disk (disk_size_gib) must be between 10");
    let large = run("snapshot clone box/before --vcpus 99");
    refused(&large, 5, "n_vcpus: requested 99");
    has(
        &large.stderr,
        "This would fit: wharf snapshot clone box/before --vcpus",
    );

    has(&ok("quota").stdout, "n_snapshots ");
    has(&ok("cost").stdout, "box/before ");
    ok("snapshot rm --yes box/before");
    refused(
        &run("snapshot rm --yes box/before"),
        3,
        "box has no snapshot before",
    );
    ok("snapshot create box --no-wait");
    let mut terminal = shell.on_terminal("wharf rm copy box").unwrap();
    terminal.wait_for("Delete copy and all its data?").unwrap();
    terminal.type_in("copy\n").unwrap();
    let question = "Delete box, all its data and its 2 snapshots?";
    terminal.wait_for(question).unwrap();
    terminal.type_in("box\n").unwrap();
    terminal.wait_for("box is deleted.").unwrap();
    terminal.end().unwrap();
    assert_eq!(ok("snapshot ls").stdout.lines().count(), 1);
}

#[test]
fn a_plan_is_set_shown_and_ended() {
    let (_server, _, shell) = signed_in("");
    let run = |words: &str| shell.run(&words.split(' ').collect::<Vec<_>>()).unwrap();
    let ok = |words: &str| run(words).succeeded().unwrap();
    ok("create box --wait");
    refused(&run("snapshot plan show box"), 3, "not found");
    let set = ok("snapshot plan set box --every 24 --keep 7 --keep-days 30");
    has(&set.stdout, "every_h     24\n");
    assert_eq!(ok("snapshot plan show box").stdout, set.stdout);
    let wrong = run("snapshot plan set box --every 0 --keep 99");
    refused(&wrong, 1, "--every (every_h) must be between 1 and 8760");
    has(&wrong.stderr, "--keep (keep) must be between 1 and 32");
    has(&ok("snapshot plan rm box").stderr, "its snapshots stay");
    refused(&run("snapshot plan rm box"), 3, "not found");
}

#[test]
fn the_time_of_a_copy_is_listed() {
    let (_server, _, shell) = signed_in("snapshots = \"copied\", snapshot_ms = 100000");
    shell.ok(&["create", "box", "--wait"]).unwrap();
    shell
        .ok(&["snapshot", "create", "box", "--no-wait"])
        .unwrap();
    until("the list has the time", || {
        let list = shell.ok(&["snapshot", "ls", "box"])?;
        Ok(list.contains(" s of about 6 s").then_some(()))
    })
    .unwrap();
}

#[test]
fn a_copied_snapshot_says_that_the_instance_stands_still() {
    let (server, _, shell) = signed_in("snapshots = \"copied\"");
    shell.ok(&["create", "box", "--wait"]).unwrap();
    let taken = shell.run(&["snapshot", "create", "box"]).unwrap();
    has(&taken.stderr, "and box stands still meanwhile");
    server.finish().unwrap();
    let (_server, _, shell) = signed_in("snapshots = \"none\"");
    shell.ok(&["create", "box", "--wait"]).unwrap();
    let none = shell.run(&["snapshot", "create", "box"]).unwrap();
    refused(&none, 1, "snapshots");
}
