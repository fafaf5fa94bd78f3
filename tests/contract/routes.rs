//! Every route of the OpenAPI document: without a key, on a missing instance, on another owner's
//! instance, and with a valid request. A new route of the document fails until it has a line here.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use wharf_conformance::openapi::Document;
use wharf_tests::{Api, Ports, Server, simulated_node, small};

const PUBLIC_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFIkGWuBbBTx9nTEHwsrBJV4jF7lFQyMDmE6pDnoO4Yg";

struct Route {
    id: String,
    method: String,
    path: String,
    public: bool,
    /// The examples of the request body, or one null without a body.
    bodies: Vec<Value>,
}

impl Route {
    fn path_for(&self, selector: &str) -> String {
        self.path
            .replace("{uuid}", selector)
            .replace("{id}", selector)
            .replace("{number}", "1")
            .replace("{share}", "none")
    }

    fn of_instance(&self) -> bool {
        self.path.contains("{uuid}")
    }

    fn is_below(&self, path: &str) -> bool {
        self.path.starts_with(path)
    }
}

struct RouteSetup {
    server: Server,
    document: Document,
    routes: Vec<Route>,
    ann: Api,
}

fn setup() -> RouteSetup {
    let node = simulated_node("one", "");
    let server = Server::start(&format!("{}{node}", Ports::take().settings())).unwrap();
    let ann = server.user("ann@example.com").unwrap();
    let served = ann.get("/api/openapi.json").unwrap().expect(200).unwrap();
    let mut routes = Vec::new();
    for (path, item) in served["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if method != "parameters" {
                routes.push(route(&served, path, method, operation));
            }
        }
    }
    assert!(routes.len() >= 12, "{}", routes.len());
    RouteSetup {
        document: Document::new(&served).unwrap(),
        server,
        routes,
        ann,
    }
}

fn route(document: &Value, path: &str, method: &str, operation: &Value) -> Route {
    let mut request = &operation["requestBody"];
    if let Some(reference) = request["$ref"].as_str() {
        request = document.pointer(&reference[1..]).unwrap();
    }
    let examples = &request["content"]["application/json"]["examples"];
    let mut bodies: Vec<Value> = match examples.as_object() {
        Some(examples) => examples.values().map(|e| e["value"].clone()).collect(),
        None => Vec::new(),
    };
    if bodies.is_empty() {
        assert!(request.is_null(), "{method} {path}: no example of a body");
        bodies.push(Value::Null);
    }
    Route {
        id: operation["operationId"].as_str().unwrap().to_owned(),
        method: method.to_uppercase(),
        path: path.to_owned(),
        public: operation["security"] == json!([]),
        bodies,
    }
}

#[test]
fn every_route_that_is_not_public_is_401_without_a_key() {
    let setup = setup();
    let mine = setup.ann.small_container().unwrap();
    let anyone = Api::new(setup.server.base_url(), "");
    for route in setup.routes.iter().filter(|r| !r.public) {
        for selector in [mine["uuid"].as_str().unwrap(), "no-such-name"] {
            let path = route.path_for(selector);
            let answer = anyone.send(&route.method, &path, &route.bodies[0]).unwrap();
            assert_eq!(answer.status, 401, "{}: {answer:?}", route.id);
            let body = Some(&answer.body);
            setup
                .document
                .check(&route.method, &path, 401, body)
                .unwrap();
        }
    }
    setup.server.finish().unwrap();
}

#[test]
fn every_instance_route_is_404_for_a_missing_or_foreign_instance() {
    let setup = setup();
    let theirs = setup.ann.small_container().unwrap();
    let bob = setup.server.user("bob@example.com").unwrap();
    for route in setup.routes.iter().filter(|r| r.of_instance()) {
        for selector in [
            theirs["uuid"].as_str().unwrap(),
            theirs["name"].as_str().unwrap(),
            "no-such-name",
            "00000000-0000-4000-8000-000000000000",
        ] {
            let path = route.path_for(selector);
            let answer = bob.send(&route.method, &path, &route.bodies[0]).unwrap();
            assert_eq!(answer.status, 404, "{}: {answer:?}", route.id);
            let body = Some(&answer.body);
            setup
                .document
                .check(&route.method, &path, 404, body)
                .unwrap();
        }
    }
    assert_eq!(setup.ann.list().unwrap().len(), 1);
    setup.server.finish().unwrap();
}

#[test]
fn every_route_of_volumes_and_snapshots_is_404_for_a_missing_or_foreign_one() {
    let setup = setup();
    let bob = setup.server.user("bob@example.com").unwrap();
    for (kind, number) in [("volume", 10), ("snapshot", 4)] {
        let theirs = prepared(&setup.ann, kind, "");
        let shown = setup.ann.get(&format!("/api/{kind}/{theirs}/")).unwrap();
        let name = shown.body["name"].as_str().unwrap().to_owned();
        let below = format!("/api/{kind}/{{id}}/");
        let routes = setup.routes.iter().filter(|r| r.is_below(&below));
        assert_eq!(routes.clone().count(), number);
        for route in routes {
            for selector in [&*theirs, &*name, "no-such-name"] {
                let path = route.path_for(selector);
                let answer = bob.send(&route.method, &path, &route.bodies[0]).unwrap();
                assert_eq!(answer.status, 404, "{}: {answer:?}", route.id);
                let body = Some(&answer.body);
                let agrees = setup.document.check(&route.method, &path, 404, body);
                assert_eq!(agrees, Ok(()), "{}", route.id);
            }
        }
    }
    setup.server.finish().unwrap();
}

#[test]
fn every_path_has_the_methods_of_the_document_and_no_others() {
    let setup = setup();
    let paths: BTreeSet<_> = setup.routes.iter().map(|route| &route.path).collect();
    for path in paths {
        let routes = setup.routes.iter().filter(|route| route.path == *path);
        let mut expected: BTreeSet<_> = routes.map(|route| route.method.clone()).collect();
        if expected.contains("GET") {
            expected.insert("HEAD".to_owned());
        }
        let path = path.replace("{uuid}", "no-such-name");
        let answer = setup.ann.raw("OPTIONS", &path, None).unwrap();
        assert_eq!(answer.status, 405, "{path}: {answer:?}");
        let allowed = answer.header("allow").unwrap().split(',');
        let allowed: BTreeSet<_> = allowed.map(|method| method.trim().to_owned()).collect();
        assert_eq!(allowed, expected, "{path}");
    }
    setup.server.finish().unwrap();
}

#[test]
fn every_route_succeeds_with_its_example_bodies() {
    let setup = setup();
    for route in &setup.routes {
        for body in &route.bodies {
            let (kind, state, status) = match route.id.as_str() {
                "healthz" | "readyz" | "listInstances" | "getQuota" | "getMetrics"
                | "listAudit" | "listKeys" | "listEvents" => (None, "", 200),
                "getSession" | "getSignInOptions" => (None, "", 200),
                // The examples have no valid token and no password of a user; tests/rest/sign_in.rs
                // covers success.
                "listFlavors" | "getOffer" | "estimateInstance" | "getUsage" => (None, "", 200),
                "listWebhooks" => (None, "", 200),
                "createWebhook" => (None, "", 201),
                "getWebhook" | "rotateWebhook" | "listWebhookDeliveries" => {
                    (Some("webhook"), "", 200)
                }
                "testWebhook" | "redeliverWebhook" => (Some("webhook"), "", 202),
                "deleteWebhook" => (Some("webhook"), "", 204),
                "listShares" => (Some("container"), "running", 200),
                // tests/rest/pages/shares.rs covers success.
                "createShare" => (Some("container"), "running", 400),
                "updateShare" | "deleteShare" => (Some("container"), "running", 404),
                "listVolumes" => (None, "", 200),
                "createVolume" => (None, "", 201),
                "getVolume" | "updateVolume" | "listVolumeShares" => (Some("volume"), "", 200),
                "shareVolume" => (Some("volume"), "", 201),
                "deleteVolume" => (Some("volume"), "", 204),
                "unshareVolume" => (Some("volume"), "", 404),
                // The examples have no volume of the user; the conformance suite covers success.
                "attachVolume" | "detachVolume" => (Some("container"), "running", 400),
                "listSnapshots" => (None, "", 200),
                "createSnapshot" => (Some("container"), "running", 201),
                "estimateSnapshot" | "setSnapshotPlan" => (Some("container"), "running", 200),
                "getSnapshotPlan" | "removeSnapshotPlan" => (Some("container"), "running", 404),
                "getSnapshot" => (Some("snapshot"), "", 200),
                "deleteSnapshot" => (Some("snapshot"), "", 204),
                "restoreSnapshot" => (Some("snapshot"), "exited", 200),
                "cloneSnapshot" => (Some("snapshot"), "", 201),
                "listBuckets" | "listBackups" => (None, "", 200),
                // The example has an address that is never found; tests/rest/backups.rs covers success.
                "addBucket" => (None, "", 400),
                "createBackup" | "setBackupPlan" => (Some("container"), "running", 400),
                "createVolumeBackup" | "setVolumeBackupPlan" => (Some("volume"), "", 400),
                "getVolumeBackupPlan" | "removeVolumeBackupPlan" => (Some("volume"), "", 404),
                "getBackupPlan" | "removeBackupPlan" => (Some("container"), "running", 404),
                "getBucket" | "forgetBucket" | "getBackup" | "deleteBackup" | "verifyBackup"
                | "restoreBackup" => (Some("volume"), "", 404),
                "getPreferences" | "updatePreferences" => (None, "", 200),
                "listSshKeys" => (None, "", 200),
                "saveSshKey" => (None, "", 201),
                "deleteSshKey" => (Some("ssh key"), "", 204),
                "getInvitation" | "acceptInvitation" | "signIn" | "fetchDeviceKey" => {
                    (None, "", 400)
                }
                "issueTicket" | "enterPage" | "signOut" | "signOutEverywhere"
                | "changePassword" | "approveDevice" => (None, "", 401),
                "beginDevice" | "beginPasskeySignIn" => (None, "", 200),
                // tests/rest/passkeys and tests/rest/oidc cover success.
                "beginInvitedPasskey" | "acceptInvitationWithPasskey" | "signInWithPasskey" => {
                    (None, "", 400)
                }
                "beginPasskey" | "listPasskeys" | "addPasskey" | "renamePasskey"
                | "removePasskey" | "unlinkIdentity" => (None, "", 401),
                "beginProviderSignIn" | "finishProviderSignIn" => (None, "", 404),
                "createInstance" | "createKey" => (None, "", 201),
                "revokeKey" => (Some("key"), "", 204),
                "getInstance" | "updateInstance" | "stopInstance" | "getStats" | "listHostKeys" => {
                    (Some("container"), "running", 200)
                }
                // The checks without an upgrade; tests/rest/terminal and tests/rest/tunnel open them.
                "openTerminal" | "openTunnel" => (Some("container"), "running", 426),
                "restartInstance" => (Some("container"), "exited", 200),
                // tests/rest/lost.rs covers success.
                "recreateInstance" | "getRecreation" => (Some("container"), "running", 400),
                "addPort" | "removePort" => (Some("vm"), "running", 200),
                "deleteInstance" => (Some("container"), "running", 204),
                unknown => panic!("{unknown} has no expected result: add a line here"),
            };
            let instance = kind.map(|kind| prepared(&setup.ann, kind, state));
            let path = route.path_for(instance.as_deref().unwrap_or_default());
            let answer = setup.ann.send(&route.method, &path, body).unwrap();
            assert_eq!(answer.status, status, "{} {body}: {answer:?}", route.id);
            let body = (status != 204).then_some(&answer.body);
            let agrees = setup.document.check(&route.method, &path, status, body);
            assert_eq!(agrees, Ok(()), "{}", route.id);
            for instance in setup.ann.list().unwrap() {
                let id = instance["uuid"].as_str().unwrap();
                setup.ann.delete(id).unwrap().expect(204).unwrap();
            }
        }
    }
    setup.server.finish().unwrap();
}

/// Creates an instance, brings it to a state, and returns its UUID.
fn prepared(api: &Api, kind: &str, state: &str) -> String {
    if kind == "key" {
        let key = api.send("POST", "/api/key/", &json!({})).unwrap();
        return key.expect(201).unwrap()["id"].as_str().unwrap().to_owned();
    }
    if kind == "webhook" {
        // A name that is never found: nothing leaves the machine.
        let body = json!({ "url": "https://receiver.invalid/" });
        let webhook = api.send("POST", "/api/webhook/", &body).unwrap();
        let webhook = webhook.expect(201).unwrap()["id"].clone();
        let id = webhook.as_str().unwrap().to_owned();
        let test = format!("/api/webhook/{id}/test/");
        let test = api.send("POST", &test, &Value::Null).unwrap();
        assert_eq!(test.expect(202).unwrap()["id"], 1);
        return id;
    }
    if kind == "volume" {
        let number = api.get("/api/volume/").unwrap().expect(200).unwrap();
        let name = format!("volume-{}", number.as_array().unwrap().len());
        let body = json!({ "name": name, "size_gib": 1 });
        let volume = api.send("POST", "/api/volume/", &body).unwrap();
        let volume = volume.expect(201).unwrap()["id"].clone();
        return volume.as_str().unwrap().to_owned();
    }
    if kind == "snapshot" {
        let instance = prepared(api, "container", state);
        let taken = format!("/api/instance/{instance}/snapshot/");
        let taken = api.send("POST", &taken, &json!({})).unwrap();
        let id = taken.expect(201).unwrap()["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let ready = wharf_tests::until("the snapshot is ready", || {
            let now = api.get(&format!("/api/snapshot/{id}/"))?;
            Ok((now.body["state"] == "ready").then_some(()))
        });
        ready.unwrap();
        return id;
    }
    if kind == "ssh key" {
        let body = json!({ "name": "another", "public_key": PUBLIC_KEY });
        let key = api.send("POST", "/api/ssh-key/", &body).unwrap();
        return key.expect(201).unwrap()["id"].as_str().unwrap().to_owned();
    }
    let created = wharf_tests::until("the resources are free", || {
        let answer = api.create(&small(kind))?;
        Ok((answer.status == 201).then_some(answer.body))
    });
    let id = created.unwrap()["uuid"].as_str().unwrap().to_owned();
    api.wait_for(&id, "running").unwrap();
    if state == "exited" {
        api.act(&id, "stop").unwrap().expect(200).unwrap();
    }
    id
}
