//! Policy files and their rules, on requests.

mod files;
mod published;

use super::PolicyFile;
use crate::message::{Body, Request, Response};
use crate::policy::{CheckedRequest, Policy, Refusal};
use http::Method;
use serde_json::{Value, json};
use wharf_domain::blueprint::{Content, File};
use wharf_domain::capacity::Size;
use wharf_domain::driver::{Network, PublishedPort, Tag};
use wharf_domain::ids::InstanceId;
use wharf_domain::secret::SecretKind;
use wharf_requests::{CallScope, CreateScope, Subject};

const ID: &str = "0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";

/// A policy with one rule of each sort.
const SAMPLE: &str = r#"
kind = "sample"
about = "An engine of the tests."

[settings.project]
about = "The project."
pattern = "[a-z]+"
default = "wharf"

[settings.publish_address]
about = "The address of published ports."
type = "address"

[settings.dns]
about = "Name servers."
default = ["10.0.0.53", "10.0.0.54"]

[names]
machine = "m-{installation.end}-{instance}-{incarnation}"

[request.list]
about = "Lists machines."
method = "GET"
path = "/machines"
query = { project = "{settings.project}", "page?" = { max = 9 }, filters = { json = { properties = { owner = { const = "{installation}" } } } } }
learn.machine = { status = 200, items = "/rows", where = { "/owner" = "{installation}", "/instance" = "{instance}" }, pointer = "/id", pattern = "[0-9a-f]{8}" }

[request.create]
about = "Creates the machine."
method = "POST"
path = "/machines"
query = { project = "{settings.project}" }
calls = "create"
learn.operation = { status = 202, pointer = "/operation", pattern = "/operations/([0-9a-f-]{4,36})" }

[request.create.body.properties]
name = { const = "{name.machine}" }
image = { enum = "{images}" }
cpu = { const = "{size.vcpus:text}" }
memory = { const = "{size.mem_bytes}" }
dns = { items = { enum = "{settings.dns}" }, maxItems = 2 }
ports = { patternProperties."^port[0-9]+$" = { each = "published", of = { properties = { listen = { const = "{settings.publish_address}:{published.node_port}" }, connect = { const = "{network.address}:{published.instance_port}" } } } } }
hint = { type = "object", properties = { color = { type = "string" } }, required = [] }

[request.wait]
about = "Waits for an operation of this call."
method = "GET"
path = "/operations/{learnt.operation}/wait"
query = { timeout = { max = 5 } }

[request.rename]
about = "Renames a machine that was found by its labels."
method = "PUT"
path = "/machines/{learnt.machine}/name"
body = { const = "{name.machine}" }

[request.file]
about = "Writes a file before the first start."
method = "POST"
path = "/machines/{name.machine}/files"
query = { path = "{file.path}" }
calls = "create"
body = "file"
headers = { X-Mode = "{file.mode}", X-Owner = "{file.uid}:{file.gid}" }

[request.directory]
about = "Makes a directory for files."
method = "POST"
path = "/machines/{name.machine}/directories"
query = { path = "{directories}" }
calls = "create"

[request.move-here]
about = "Brings the machine here."
method = "POST"
path = "/machines/{name.machine}/move-here"
calls = "move"

[request.pull]
about = "Pulls the image."
method = "POST"
path = "/images/{images}/pull"
job = true
"#;

fn scope() -> CallScope {
    let tag = Tag {
        instance: InstanceId::parse(ID).unwrap(),
        incarnation: 3,
    };
    CallScope {
        changes: true,
        subject: Some(Subject {
            size: Some(Size {
                n_vcpus: 2,
                mem_gib: 4,
                disk_size_gib: 10,
            }),
            network: Some(Network {
                id: "o1".into(),
                subnet: "10.80.1.0/24".parse().unwrap(),
                gateway: "10.80.1.1".parse().unwrap(),
                address: "10.80.1.7".parse().unwrap(),
            }),
            creation: Some(CreateScope {
                hostname: "demo".into(),
                images: vec!["wharf/base:1".into()],
                environment: Vec::new(),
                command: Vec::new(),
                published: vec![published(20_001, 22), published(20_002, 80)],
                gpu_devices: Vec::new(),
                files: vec![password()],
            }),
            ..Subject::new(tag)
        }),
        ..CallScope::node("c8ba4720-ac4f-4603-8aa4-a08d240a1045")
    }
}

fn published(node_port: u16, instance_port: u16) -> PublishedPort {
    PublishedPort {
        node_port,
        instance_port,
    }
}

fn password() -> File {
    File {
        path: "/etc/wharf/first-boot/password".into(),
        mode: 0o600,
        uid: 1,
        gid: 2,
        content: Content::SecretCrypt(SecretKind::Password),
    }
}

fn policy() -> Policy {
    let file = PolicyFile::parse(SAMPLE).unwrap();
    Policy::new(&file, &json!({ "publish_address": "192.0.2.1", "more": 1 })).unwrap()
}

fn ask_as(
    scope: &CallScope,
    method: Method,
    path: &str,
    body: Body,
    job: bool,
) -> Result<CheckedRequest, Refusal> {
    let request = Request {
        method,
        path: path.into(),
        headers: Vec::new(),
        body,
        timeout: None,
    };
    policy().check(scope, &request, job)
}

fn ask(method: Method, path: &str, body: Body) -> Result<CheckedRequest, Refusal> {
    ask_as(&scope(), method, path, body, false)
}

fn refused(method: Method, path: &str, body: Body, words: &str) {
    let why = ask(method, path, body).unwrap_err().0;
    assert!(why.contains(words), "{why}");
}

fn machine() -> String {
    format!("m-240a1045-{ID}-3")
}

fn body() -> Value {
    json!({
        "name": machine(),
        "image": "wharf/base:1",
        "cpu": "2",
        "memory": 4_u64 << 30,
        "dns": ["10.0.0.54"],
        "ports": {
            "port1": { "listen": "192.0.2.1:20001", "connect": "10.80.1.7:22" },
            "port2": { "listen": "192.0.2.1:20002", "connect": "10.80.1.7:80" },
        },
        "hint": {},
    })
}

fn create(body: &Value) -> Result<CheckedRequest, Refusal> {
    let path = "/machines?project=wharf";
    ask(Method::POST, path, Body::Json(body.to_string()))
}

#[test]
fn a_body_has_the_values_of_the_call() {
    assert_eq!(create(&body()).unwrap().rule, "create");
}

#[test]
fn another_value_is_refused_with_its_place() {
    let cases = [
        ("/name", json!("m-240a1045-other-3"), "name"),
        ("/image", json!("other"), "image"),
        ("/cpu", json!(2), "cpu"),
        ("/cpu", json!("3"), "cpu"),
        ("/memory", json!(8_u64 << 30), "memory"),
        ("/dns/0", json!("192.0.2.9"), "dns.0"),
        ("/ports/port1/listen", json!("0.0.0.0:20001"), "ports.port1"),
        (
            "/ports/port1/listen",
            json!("192.0.2.1:20002"),
            "ports.port1",
        ),
        ("/ports/port1/connect", json!("10.80.1.8:22"), "ports.port1"),
        ("/hint", json!({ "color": 1 }), "hint.color"),
    ];
    for (pointer, value, place) in cases {
        let mut body = body();
        *body.pointer_mut(pointer).unwrap() = value;
        let why = create(&body).unwrap_err().0;
        assert!(why.starts_with(&format!("create: {place}: ")), "{why}");
    }
}

#[test]
fn objects_are_closed_and_complete() {
    for (place, key) in [
        ("", "privileged"),
        ("/hint", "x"),
        ("/ports", "proxy"),
        ("/ports/port1", "bind"),
    ] {
        let mut body = body();
        body.pointer_mut(place).unwrap()[key] = json!(true);
        let why = create(&body).unwrap_err().0;
        assert!(why.contains(key) || place == "/ports/port1", "{why}");
    }
    for key in ["name", "image", "cpu", "memory", "dns", "ports", "hint"] {
        let mut body = body();
        body.as_object_mut().unwrap().remove(key);
        let why = create(&body).unwrap_err().0;
        assert!(why.contains(key), "{why}");
    }
    for body in ["null", "[]", "1", "\"x\"", "{}"] {
        assert!(
            ask(
                Method::POST,
                "/machines?project=wharf",
                Body::Json(body.into())
            )
            .is_err()
        );
    }
}

#[test]
fn paths_and_queries_are_exact() {
    let none = || Body::Empty;
    let filters = "%7B%22owner%22%3A%22c8ba4720-ac4f-4603-8aa4-a08d240a1045%22%7D";
    let list = format!("/machines?project=wharf&filters={filters}");
    ask(Method::GET, &list, none()).unwrap();
    ask(Method::GET, &format!("{list}&page=9"), none()).unwrap();
    refused(Method::GET, &format!("{list}&page=10"), none(), "up to 9");
    refused(Method::GET, &format!("{list}&all=1"), none(), "\"all\"");
    refused(
        Method::GET,
        "/machines?project=wharf",
        none(),
        "\"filters\" is required",
    );
    refused(
        Method::GET,
        &list.replace("wharf", "other"),
        none(),
        "{settings.project}",
    );
    refused(
        Method::GET,
        &list.replace("owner", "name"),
        none(),
        "filters: ",
    );
    refused(Method::GET, &list, Body::Json("{}".into()), "takes no body");
    refused(Method::DELETE, "/machines", none(), "DELETE on this path");
    refused(Method::GET, "/certificates", none(), "GET on this path");
    let other = "/machines/m-240a1045-other-3/files?path=/x";
    refused(
        Method::POST,
        other,
        none(),
        &format!("/machines/{}/files", machine()),
    );
}

#[test]
fn a_reading_call_changes_nothing() {
    let mut scope = scope();
    scope.changes = false;
    let body = Body::Json(body().to_string());
    let why = ask_as(&scope, Method::POST, "/machines?project=wharf", body, false);
    assert!(why.unwrap_err().0.contains("changes nothing"));
}

#[test]
fn only_the_named_calls_may_send_a_request() {
    let mut scope = scope();
    scope.subject.as_mut().unwrap().creation = None;
    let body = Body::Json(body().to_string());
    let why = ask_as(&scope, Method::POST, "/machines?project=wharf", body, false);
    assert!(why.is_err());
}

#[test]
fn only_a_move_moves_an_instance_and_it_creates_nothing() {
    let moving = CallScope {
        moves: true,
        ..scope()
    };
    let move_here = |scope: &CallScope| {
        let path = format!("/machines/{}/move-here", machine());
        ask_as(scope, Method::POST, &path, Body::Empty, false)
    };
    let create = |scope: &CallScope| {
        let body = Body::Json(body().to_string());
        ask_as(scope, Method::POST, "/machines?project=wharf", body, false)
    };
    move_here(&moving).unwrap();
    create(&scope()).unwrap();
    assert!(move_here(&scope()).is_err());
    assert!(create(&moving).is_err());
}

#[test]
fn ids_are_learnt_from_answers_of_the_call() {
    let mut scope = scope();
    let wait = |scope: &CallScope| {
        let path = "/operations/ab12/wait?timeout=5";
        ask_as(scope, Method::GET, path, Body::Empty, false)
    };
    assert!(wait(&scope).is_err());
    let answer = |status, body: Value| Response {
        status,
        headers: Vec::new(),
        body: body.to_string().into(),
    };
    let told = json!({ "operation": "/operations/ab12" });
    let learn = |scope: &mut CallScope, rule, answer: &Response| {
        policy().learn(scope, rule, answer);
    };
    learn(&mut scope, "create", &answer(200, told.clone()));
    learn(&mut scope, "wait", &answer(202, told.clone()));
    learn(
        &mut scope,
        "create",
        &answer(202, json!({ "operation": "/operations/ab12/x" })),
    );
    assert!(wait(&scope).is_err());
    learn(&mut scope, "create", &answer(202, told));
    wait(&scope).unwrap();

    let installation = scope.installation.clone();
    let row = |owner: &str, instance: &str, id: &str| json!({ "owner": owner, "instance": instance, "id": id });
    let rows = json!({ "rows": [
        row("other", ID, "00000001"),
        row(&installation, "other", "00000002"),
        row(&installation, ID, "../x"),
        row(&installation, ID, "00000003"),
    ] });
    learn(&mut scope, "list", &answer(200, rows));
    assert_eq!(scope.learnt["machine"], ["00000003"]);
    let rename = |id: &str| {
        let path = format!("/machines/{id}/name");
        ask_as(
            &scope,
            Method::PUT,
            &path,
            Body::Json(json!(machine()).to_string()),
            false,
        )
    };
    rename("00000003").unwrap();
    assert!(rename("00000002").is_err());
}

#[test]
fn a_file_is_the_blueprints_and_the_host_adds_its_headers() {
    let path = |path: &str| format!("/machines/{}/files?path={path}", machine());
    let own = "/etc/wharf/first-boot/password";
    let checked = ask(Method::POST, &path(own), Body::File(password())).unwrap();
    let headers = [("X-Mode", "0600"), ("X-Owner", "1:2")];
    assert_eq!(
        checked.headers,
        headers.map(|(name, value)| (name.into(), value.into()))
    );

    refused(
        Method::POST,
        &path("/etc/shadow"),
        Body::File(password()),
        "path=",
    );
    let mut open = password();
    open.mode = 0o644;
    refused(
        Method::POST,
        &path(own),
        Body::File(open),
        "not the blueprint's",
    );
    refused(Method::POST, &path(own), Body::Empty, "file");
    refused(
        Method::POST,
        &path(own),
        Body::Archive(vec![password()]),
        "file",
    );

    let directory = |path: &str| format!("/machines/{}/directories?path={path}", machine());
    ask(Method::POST, &directory("/etc/wharf"), Body::Empty).unwrap();
    refused(Method::POST, &directory("/root"), Body::Empty, "path=");
}

#[test]
fn a_long_request_is_a_job_and_no_other_is() {
    let ask = |path, job| ask_as(&scope(), Method::POST, path, Body::Empty, job);
    let pull = "/images/wharf/base:1/pull";
    ask(pull, true).unwrap();
    assert!(ask(pull, false).unwrap_err().0.contains("must be a job"));
    assert!(ask("/images/wharf/other:1/pull", true).is_err());
    let directory = format!("/machines/{}/directories?path=/etc/wharf", machine());
    assert!(
        ask(&directory, true)
            .unwrap_err()
            .0
            .contains("must not be a job")
    );
}
