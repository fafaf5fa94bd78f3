//! Tests of the language, with small files.

mod arguments;
mod bounds;
mod credentials;
mod host_values;
mod load;
mod trees;
mod writing;

use crate::sample::SampleCall;
use crate::{Purpose, Rendered, RenderedBody, RequestFile, Requests};
use serde_json::{Value, json};

/// The rows of a table: two columns with `=>` between them. `\\n` is a new line.
fn rows(table: &str) -> impl Iterator<Item = (String, &str)> {
    let rows = table.lines().map(str::trim).filter(|row| !row.is_empty());
    rows.map(|row| {
        let (left, right) = row.rsplit_once("=>").unwrap();
        (left.trim().replace("\\n", "\n"), right.trim())
    })
}

/// A file of these tables.
fn file(tables: &str) -> Result<RequestFile, String> {
    RequestFile::parse(&format!(
        "kind = \"x\"\nabout = \"Tests.\"\n{}",
        tables.trim()
    ))
}

/// A request `r` that the creation of an instance sends.
const REQUEST: &str = r#"
    [request.r]
    about = "A test."
    method = "POST"
    path = "/r"
    calls = "create"
"#;

/// Writes the request `r` of a file, in a sample call.
fn write(tables: &str, call: &Value, arguments: &[(&str, &str)]) -> Result<Rendered, String> {
    let file = file(tables).unwrap_or_else(|error| panic!("{error}\n{tables}"));
    send(&file, "r", call, arguments, Purpose::Send)
}

/// Writes a request of a file, in a sample call.
fn send(
    file: &RequestFile,
    name: &str,
    call: &Value,
    arguments: &[(&str, &str)],
    purpose: Purpose,
) -> Result<Rendered, String> {
    let sample = SampleCall::parse(&call.to_string()).unwrap();
    let requests = Requests::new(file, &sample.settings).unwrap();
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let arguments: Vec<_> = arguments.iter().map(own).collect();
    let written = requests.render(&sample.scope, name, &arguments, purpose);
    written.map_err(|refusal| refusal.0)
}

/// The body of the request `r` with this body, after these tables.
fn body_of(
    tables: &str,
    body: &str,
    call: &Value,
    arguments: &[(&str, &str)],
) -> Result<Value, String> {
    let tables = format!("{tables}\n{REQUEST}\n[request.r.body]\n{body}");
    match write(&tables, call, arguments)?.body {
        RenderedBody::Json(text) => Ok(serde_json::from_str(&text).unwrap()),
        other => panic!("{other:?}"),
    }
}

/// A creation of a container.
fn container() -> Value {
    json!({})
}

/// A creation of a virtual machine with a public address.
fn vm() -> Value {
    json!({
        "kind": "vm",
        "ports": [22, 80],
        "public": { "id": "0p", "subnet": "203.0.113.0/26", "gateway": "203.0.113.1", "address": "203.0.113.9" },
    })
}
