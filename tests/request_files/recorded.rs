//! Recorded requests of each driver: a change of a file that changes a request is seen here. They are the
//! requests that the drivers built themselves, before the host wrote them.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use wharf_requests::{Purpose, Rendered, RenderedBody, RequestFile, Requests, SampleCall};

const DRIVERS: [&str; 2] = ["driver-docker", "driver-incus"];

#[derive(Deserialize)]
struct Recorded {
    request: String,
    #[serde(default)]
    arguments: BTreeMap<String, String>,
    /// The members of the sample.
    call: Value,
    written: Value,
}

/// Writes a request for the sample.
fn written(file: &RequestFile, recorded: &Recorded) -> Value {
    let sample = SampleCall::parse(&recorded.call.to_string()).unwrap();
    let requests = Requests::new(file, &sample.settings).unwrap();
    let arguments: Vec<_> = recorded.arguments.clone().into_iter().collect();
    let name = &recorded.request;
    let render = |purpose| requests.render(&sample.scope, name, &arguments, purpose);
    if let Ok(targets) = requests.transfer(&sample.scope, name, &arguments) {
        return targets.to_string().lines().collect();
    }
    let rendered = [Purpose::Send, Purpose::Job]
        .into_iter()
        .find_map(|purpose| render(purpose).ok());
    let Some(rendered) = rendered else {
        panic!("{name}: {:?}", render(Purpose::Show))
    };
    let Rendered {
        method,
        target,
        body,
        headers,
        credentials,
    } = rendered;
    let mut written = vec![json!(format!("{method} {target}"))];
    if !headers.is_empty() {
        written.push(json!(headers.into_iter().collect::<BTreeMap<_, _>>()));
    }
    if let Some(registry) = credentials {
        written.push(format!("credentials for {registry}").into());
    }
    match body {
        RenderedBody::None => {}
        RenderedBody::Json(text) => written.push(serde_json::from_str(&text).unwrap()),
        RenderedBody::Archive(files) => {
            let files = files.iter().map(|file| file.path.as_str());
            written.push(files.collect());
        }
        RenderedBody::File(file) => written.push(file.path.into()),
        RenderedBody::Noise => written.push("noise".into()),
    }
    written.into()
}

#[test]
fn requests_are_those_that_were_recorded() {
    for driver in DRIVERS {
        let plugin = wharf_testkit::workspace::root()
            .join("plugins")
            .join(driver);
        let text = crate::request_file(driver);
        let file = RequestFile::parse(&text).unwrap();
        let all = std::fs::read_to_string(plugin.join("tests/requests.json")).unwrap();
        let all: Vec<Recorded> = serde_json::from_str(&all).unwrap();
        for recorded in &all {
            let written = written(&file, recorded);
            assert_eq!(written, recorded.written, "{driver} {}", recorded.request);
        }
        let text: toml::Table = text.parse().unwrap();
        let tables = ["request", "transfer"]
            .into_iter()
            .filter_map(|name| text.get(name));
        let known = tables.flat_map(|table| table.as_table().unwrap().keys());
        let known: BTreeSet<&str> = known.map(String::as_str).collect();
        let seen: BTreeSet<&str> = all.iter().map(|one| one.request.as_str()).collect();
        assert_eq!(seen, known, "{driver}: every request is recorded");
    }
}
