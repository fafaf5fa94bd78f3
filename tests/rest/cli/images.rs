//! `wharf images` on an engine that answers from a script.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Result, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use wharf_tests::Shell;

/// Answers the requests of a connection: `marimo` is of an earlier version, and `genomics` is missing.
fn answer(stream: UnixStream) -> Result<()> {
    let mut writer = stream.try_clone()?;
    let mut path = String::new();
    for line in BufReader::new(stream).lines() {
        let line = line?;
        if let Some(target) = line.strip_prefix("GET ") {
            target.clone_into(&mut path);
        }
        if !line.is_empty() {
            continue;
        }
        let labels = if path.contains("/marimo:") {
            json!({})
        } else {
            json!({ "io.wharf.ssh": "1" })
        };
        let (status, body) = if path.contains("/genomics:") {
            ("404 Not Found", json!({ "message": "no such image" }))
        } else {
            ("200 OK", json!({ "Config": { "Labels": labels } }))
        };
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json");
        write!(
            writer,
            "{head}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
    }
    Ok(())
}

#[test]
fn images_are_shown_with_their_ssh_servers() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("engine.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    // The thread ends with the test's process.
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || drop(answer(stream)));
        }
    });
    let endpoint = format!("unix://{}", socket.display());
    let recipes = wharf_testkit::images::recipes().directory;
    let args = [
        "images",
        "--engine",
        &endpoint,
        "--recipes",
        recipes.to_str().unwrap(),
    ];
    let shell = Shell::new().unwrap();
    let shown = shell.run(&args).unwrap().succeeded().unwrap().stdout;
    let row = |image: &str| {
        let line = shown
            .lines()
            .find(|line| line.split_whitespace().nth(1) == Some(image));
        line.unwrap().split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(row("IMAGE"), "SSH");
    // The disk of virtual machines has theirs.
    for (image, ssh) in [
        ("base", "yes"),
        ("marimo", "no"),
        ("genomics", "-"),
        ("vm-base", "-"),
    ] {
        assert_eq!(row(image), ssh, "{shown}");
    }
    let printed = shell.run(&[&args[..], &["-o", "json"]].concat()).unwrap();
    let rows: Value = serde_json::from_str(&printed.succeeded().unwrap().stdout).unwrap();
    let rows = rows.as_array().unwrap();
    for (image, state, ssh) in [
        ("base", "present, made from another recipe", json!(true)),
        ("marimo", "present, made from another recipe", json!(false)),
        ("genomics", "missing", Value::Null),
        ("vm-base", "present, made from another recipe", Value::Null),
    ] {
        let wanted = json!({ "node": endpoint, "image": image, "state": state, "has_ssh": ssh });
        assert!(rows.contains(&wanted), "{wanted} is not in {rows:?}");
    }
}
