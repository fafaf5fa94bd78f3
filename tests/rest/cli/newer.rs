//! Answers of a later version, with values and forms that this one does not know.

use crate::{has, start};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use wharf_tests::Shell;

/// A server with this list of instances, which answers a creation with its first one.
fn server(instances: &Value) -> String {
    let (list, first) = (instances.to_string(), instances[0].to_string());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).unwrap_or_default();
            let body = if bytes[..length].starts_with(b"POST") {
                &first
            } else {
                &list
            };
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}");
            let _ = write!(stream, "{head}\r\n\r\n{body}");
        }
    });
    url
}

const UUID: &str = "01a21c53-ad72-70b5-8bad-fc5bc4c944a8";

#[test]
fn unknown_values_are_shown_as_they_are() {
    let (real, api) = start();
    let mut instance = api.small_container().unwrap();
    real.finish().unwrap();
    instance["state"] = json!("hibernating");
    instance["resource_type"] = json!("unikernel");
    let url = server(&json!([instance]));
    let variables = [("WHARF_URL", &*url), ("WHARF_API_KEY", "wharf_x_y")];
    let shell = Shell::new().unwrap();
    let list = shell.run_with(&["ls"], &variables, "").unwrap();
    assert_eq!(list.code, Some(0), "{list:?}");
    has(&list.stdout, "hibernating");
    has(&list.stdout, "unikernel");
}

#[test]
fn a_created_instance_is_told_whatever_the_answer_says_about_it() {
    let url = server(&json!([{ "uuid": UUID, "name": "box", "state": ["asleep"] }]));
    let variables = [("WHARF_URL", &*url), ("WHARF_API_KEY", "wharf_x_y")];
    let shell = Shell::new().unwrap();
    let created = shell.run_with(&["create"], &variables, "").unwrap();
    assert_eq!(created.code, Some(0), "{created:?}");
    has(&created.stderr, "box is starting");
    has(&created.stdout, UUID);
    let args = ["create", "-o", "json"];
    let created = shell.run_with(&args, &variables, "").unwrap();
    let created: Value = serde_json::from_str(&created.stdout).unwrap();
    assert_eq!(created["state"], json!(["asleep"]));
}
