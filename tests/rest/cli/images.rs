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
            json!({ "io.wharf.ssh": "1", "io.wharf.content": "Studio", "io.wharf.source": "packages" })
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
fn images_are_shown_with_ssh_server_content_and_source() {
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
        let words: Vec<_> = line.unwrap().split_whitespace().collect();
        words[words.len() - 3..].join(" ")
    };
    assert_eq!(row("IMAGE"), "SSH CONTENT SOURCE");
    // The disk of virtual machines has theirs.
    for (image, last) in [
        ("base", "yes Studio packages"),
        ("marimo", "no - -"),
        ("genomics", "- - -"),
        ("vm-base", "- Studio packages"),
    ] {
        assert_eq!(row(image), last, "{shown}");
    }
    let printed = shell.run(&[&args[..], &["-o", "json"]].concat()).unwrap();
    let rows: Value = serde_json::from_str(&printed.succeeded().unwrap().stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let other = "present, made from another recipe";
    for (image, state, ssh, is_labelled) in [
        ("base", other, json!(true), true),
        ("marimo", other, json!(false), false),
        ("genomics", "missing", Value::Null, false),
        ("vm-base", other, Value::Null, true),
    ] {
        let mut wanted =
            json!({ "node": endpoint, "image": image, "state": state, "has_ssh": ssh });
        wanted["content"] = is_labelled.then_some("Studio").into();
        wanted["source"] = is_labelled.then_some("packages").into();
        assert!(rows.contains(&wanted), "{wanted} is not in {rows:?}");
    }
}
