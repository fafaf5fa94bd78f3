//! The walls of each creation, written by hand: a second opinion on the request files. A creation has
//! every limit and wall with the value of its call, and no member that is not named here.

mod docker;
mod incus;
mod podman;
mod simulated;
mod volumes;

use std::collections::BTreeSet;
use wharf_requests::{Purpose, RenderedBody, RequestFile, Requests, SampleCall};

const GIB: u64 = 1 << 30;
const DIGEST: (&str, &str) = ("digest", "0123456789abcdef");

/// The request of a driver that creates an instance.
struct Creation {
    driver: &'static str,
    request: &'static str,
    calls: Vec<Call>,
    /// The permitted members of objects, by JSON pointer.
    members: Vec<(&'static str, Vec<&'static str>)>,
    /// The places of the file that no wall needs.
    free: Vec<&'static str>,
    /// Lines that would open a wall, by their place in the file.
    doors: Vec<(&'static str, toml::Value)>,
}

/// A call that sends it.
struct Call {
    name: &'static str,
    arguments: Vec<(&'static str, &'static str)>,
    sample: serde_json::Value,
    /// The members of the body with their values, by JSON pointer. Null stands for no member.
    walls: Vec<(&'static str, serde_json::Value)>,
}

fn creations() -> Vec<Creation> {
    vec![
        docker::docker(),
        podman::podman(),
        incus::create(),
        incus::clone(),
        incus::fetched(),
        incus::furnishing(),
        simulated::create(),
        volumes::holder(),
        volumes::carrier(),
        volumes::docker(),
        volumes::incus(),
        volumes::attachment(),
        volumes::probe(false),
        volumes::probe(true),
    ]
}

impl Creation {
    fn file(&self) -> toml::Table {
        crate::request_file(self.driver).parse().unwrap()
    }

    /// The faults of all calls. A file that does not load, or refuses the request, has one too.
    fn faults(&self, file: &toml::Table) -> Vec<String> {
        let text = toml::to_string(file).unwrap();
        let file = match RequestFile::parse(&text) {
            Ok(file) => file,
            Err(why) => return vec![why],
        };
        let calls = self.calls.iter();
        calls.flat_map(|call| self.faults_of(&file, call)).collect()
    }

    fn faults_of(&self, file: &RequestFile, call: &Call) -> Vec<String> {
        let sample = SampleCall::parse(&call.sample.to_string()).unwrap();
        let text = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let arguments: Vec<_> = call.arguments.iter().map(text).collect();
        let rendered = Requests::new(file, &sample.settings).and_then(|requests| {
            let (scope, name) = (&sample.scope, self.request);
            let rendered = requests.render(scope, name, &arguments, Purpose::Send);
            rendered.map_err(|refusal| refusal.0)
        });
        let body: serde_json::Value = match rendered.map(|rendered| rendered.body) {
            Ok(RenderedBody::Json(text)) => serde_json::from_str(&text).unwrap(),
            Ok(_) => return vec![format!("{}: no JSON", call.name)],
            Err(why) => return vec![format!("{}: {why}", call.name)],
        };
        let mut faults = Vec::new();
        for (pointer, wanted) in &call.walls {
            let given = body.pointer(pointer).unwrap_or(&serde_json::Value::Null);
            if given != wanted {
                faults.push(format!("{}{pointer}: {given}, not {wanted}", call.name));
            }
        }
        for (pointer, known) in &self.members {
            let members = body.pointer(pointer).and_then(|object| object.as_object());
            let unknown = members.into_iter().flat_map(|members| members.keys());
            let unknown = unknown.filter(|key| !known.contains(&key.as_str()));
            faults.extend(unknown.map(|key| format!("{}{pointer}/{key}: not known", call.name)));
        }
        faults
    }
}

/// The places of a creation in its file: the members of its body, and of the values that it uses.
fn places(file: &toml::Table, request: &str) -> Vec<Vec<String>> {
    let body = &file["request"][request]["body"];
    let mut places = Vec::new();
    walk(
        body,
        vec!["request".into(), request.into(), "body".into()],
        &mut places,
    );
    let mut text = body.to_string();
    let mut used = BTreeSet::new();
    let values = file.get("values").and_then(toml::Value::as_table);
    loop {
        let is_new = |name: &&String| !used.contains(*name) && mentions(&text, name);
        let Some(name) = values.into_iter().flat_map(|all| all.keys()).find(is_new) else {
            return places;
        };
        used.insert(name.clone());
        let value = &values.unwrap()[name];
        walk(value, vec!["values".into(), name.clone()], &mut places);
        text.push_str(&value.to_string());
    }
}

fn mentions(text: &str, value: &str) -> bool {
    let name = format!("value.{value}");
    let is_end =
        |after: &str| !after.starts_with(|c: char| c.is_alphanumeric() || "_-".contains(c));
    text.match_indices(&name)
        .any(|(at, _)| is_end(&text[at + name.len()..]))
}

/// Adds the places below a place that can be removed. The parts of a construct are no lines of their own.
fn walk(value: &toml::Value, place: Vec<String>, places: &mut Vec<Vec<String>>) {
    let members: Vec<(String, &toml::Value)> = match value {
        toml::Value::Table(table) => table.iter().map(|(k, v)| (k.clone(), v)).collect(),
        toml::Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(n, v)| (n.to_string(), v))
            .collect(),
        _ => Vec::new(),
    };
    for (name, member) in members {
        let mut inner = place.clone();
        inner.push(name.clone());
        if name == "when" {
            continue;
        }
        if !["each", "key", "item"].contains(&name.as_str()) {
            places.push(inner.clone());
        }
        walk(member, inner, places);
    }
}

/// The value at a place.
fn at<'a>(value: &'a mut toml::Value, place: &[String]) -> &'a mut toml::Value {
    place.iter().fold(value, |value, name| match value {
        toml::Value::Table(table) => table
            .entry(name)
            .or_insert_with(|| toml::Table::new().into()),
        toml::Value::Array(items) => &mut items[name.parse::<usize>().unwrap()],
        _ => panic!("{name} is not in a table"),
    })
}

fn without(file: &toml::Table, place: &[String]) -> toml::Table {
    let mut file = toml::Value::Table(file.clone());
    let (last, parents) = place.split_last().unwrap();
    match at(&mut file, parents) {
        toml::Value::Table(table) => drop(table.remove(last)),
        toml::Value::Array(items) => drop(items.remove(last.parse().unwrap())),
        _ => unreachable!(),
    }
    file.try_into().unwrap()
}

#[test]
fn each_creation_has_its_walls() {
    for creation in creations() {
        let faults = creation.faults(&creation.file());
        assert!(faults.is_empty(), "{}: {faults:#?}", creation.driver);
    }
}

#[test]
fn a_file_that_forgets_a_line_of_a_creation_fails() {
    for creation in creations() {
        let file = creation.file();
        let unnoticed: BTreeSet<_> = places(&file, creation.request)
            .into_iter()
            .filter(|place| creation.faults(&without(&file, place)).is_empty())
            .map(|place| place.join("/"))
            .collect();
        let free = creation.free.iter().map(ToString::to_string).collect();
        assert_eq!(unnoticed, free, "{} {}", creation.driver, creation.request);
    }
}

#[test]
fn a_file_with_a_door_in_a_wall_fails() {
    for creation in creations() {
        for (place, door) in &creation.doors {
            let mut file = toml::Value::Table(creation.file());
            let place: Vec<_> = place.split('/').map(str::to_owned).collect();
            *at(&mut file, &place) = door.clone();
            let faults = creation.faults(&file.try_into().unwrap());
            assert!(!faults.is_empty(), "{}: {place:?}", creation.driver);
        }
    }
}
