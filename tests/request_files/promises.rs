//! Promises of the request files of Docker and Incus beyond their creations.

use serde_json::{Value, json};
use wharf_requests::{CallScope, Purpose, RequestFile, Requests, SampleCall};

const OWN: &str = "wharf-0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";
const OTHER: &str = "wharf-11111111-3c1e-4f43-9d2b-2c1c1f8f8f8f";
const INCUS: &str = "wh-240a1045-0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f-3";

/// A call of a driver.
pub struct PromiseCall {
    requests: Requests,
    scope: CallScope,
}

impl PromiseCall {
    fn new(driver: &str, sample: Value) -> Self {
        let sample = SampleCall::parse(&sample.to_string()).unwrap();
        let file = RequestFile::parse(&crate::request_file(driver)).unwrap();
        Self {
            requests: Requests::new(&file, &sample.settings).unwrap(),
            scope: sample.scope,
        }
    }

    pub fn docker(sample: Value) -> Self {
        Self::new("driver-docker", sample)
    }

    pub fn incus(call: &str) -> Self {
        Self::incus_with(call, json!({}))
    }

    /// A call on Incus with these members of the sample.
    pub fn incus_with(call: &str, mut sample: Value) -> Self {
        sample["call"] = call.into();
        sample["settings"] =
            json!({ "member": "one", "gateway": "10.80.0.1", "publish_address": "192.0.2.1" });
        Self::new("driver-incus", sample)
    }

    /// The request, or the refusal.
    fn ask(
        &self,
        name: &str,
        arguments: &[(&str, &str)],
        purpose: Purpose,
    ) -> Result<String, String> {
        let arguments = texts(arguments);
        let rendered = self.requests.render(&self.scope, name, &arguments, purpose);
        rendered
            .map(|written| written.to_string())
            .map_err(|refusal| refusal.0)
    }

    /// The targets of a transfer, or the refusal.
    pub fn copy(&self, name: &str, arguments: &[(&str, &str)]) -> Result<String, String> {
        let arguments = texts(arguments);
        let targets = self.requests.transfer(&self.scope, name, &arguments);
        targets
            .map(|targets| targets.to_string())
            .map_err(|refusal| refusal.0)
    }

    pub fn send(&self, name: &str, arguments: &[(&str, &str)]) -> Result<String, String> {
        self.ask(name, arguments, Purpose::Send)
    }

    /// The request as a job, or the refusal.
    pub fn job(&self, name: &str, arguments: &[(&str, &str)]) -> Result<String, String> {
        self.ask(name, arguments, Purpose::Job)
    }

    /// Takes an answer to a request.
    pub fn answer(&mut self, name: &str, arguments: &[(&str, &str)], status: u16, body: &Value) {
        let (arguments, body) = (texts(arguments), body.to_string());
        let body = body.as_bytes();
        self.requests
            .learn(&mut self.scope, name, &arguments, status, body);
    }

    /// Takes an answer of text to a request without arguments.
    pub fn answer_text(&mut self, name: &str, status: u16, body: &str) {
        let body = body.as_bytes();
        self.requests
            .learn(&mut self.scope, name, &[], status, body);
    }
}

fn texts(arguments: &[(&str, &str)]) -> Vec<(String, String)> {
    let text = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    arguments.iter().map(text).collect()
}

#[track_caller]
pub fn refused(answer: Result<String, String>, words: &str) {
    let why = answer.unwrap_err();
    assert!(why.contains(words), "{why}");
}

pub fn body(written: &str) -> Value {
    let (_, body) = written.split_once("\n\n").unwrap();
    serde_json::from_str(body).unwrap()
}

#[test]
fn an_update_sets_the_size_of_the_call_or_the_one_before() {
    let mut call = PromiseCall::docker(json!({ "call": "change" }));
    let own = json!({ "CpuPeriod": 100_000, "CpuQuota": 200_000, "Memory": 1 << 30, "MemorySwap": 1 << 30 });
    assert_eq!(body(&call.send("resize", &[]).unwrap()), own);
    refused(
        call.send("resize", &[("Memory", "0")]),
        "there is no argument \"Memory\"",
    );
    refused(call.send("resize-back", &[]), "resize-back");
    let report = |memory: u64| json!({ "HostConfig": { "CpuPeriod": 100_000, "CpuQuota": 50_000, "Memory": memory } });
    // Zero means no limit.
    call.answer("read", &[], 200, &report(0));
    refused(call.send("resize-back", &[]), "resize-back");
    call.answer("read", &[], 200, &report(5 << 30));
    // An update of this call may be the cause of a later report.
    call.answer("read", &[], 200, &report(7 << 30));
    let before = json!({ "CpuPeriod": 100_000, "CpuQuota": 50_000, "Memory": 5_u64 << 30, "MemorySwap": 5_u64 << 30 });
    assert_eq!(body(&call.send("resize-back", &[]).unwrap()), before);
    let vm = PromiseCall::docker(json!({ "call": "change", "kind": "vm" }));
    let podman = body(&vm.send("resize-podman", &[]).unwrap());
    assert_eq!(podman["memory"]["limit"], (1_u64 << 30) + (384 << 20));
}

#[test]
fn only_ids_that_the_engine_lists_with_the_calls_labels_stand_for_a_container() {
    let mut call = PromiseCall::docker(json!({ "call": "change" }));
    let id = |digit: char| digit.to_string().repeat(64);
    let labels = |installation: &str, instance: &str| json!({ "io.wharf.installation": installation, "io.wharf.instance": instance });
    let installation = "c8ba4720-ac4f-4603-8aa4-a08d240a1045";
    let (own, other) = (&OWN["wharf-".len()..], &OTHER["wharf-".len()..]);
    call.answer(
        "list-instance",
        &[],
        200,
        &json!([
            { "Id": id('a'), "Labels": labels(installation, own) },
            { "Id": id('b'), "Labels": labels(installation, other) },
            { "Id": id('c'), "Labels": labels("another", own) },
            { "Id": id('d') },
        ]),
    );
    for container in [OWN, &id('a')] {
        let started = call.send("start", &[("container", container)]).unwrap();
        assert!(started.contains(container), "{started}");
    }
    for container in [OTHER, &id('b'), &id('c'), &id('d'), "", "..", "postgres"] {
        for request in ["start", "delete", "resize", "connect", "prepare-ports"] {
            let answer = call.send(request, &[("container", container)]);
            refused(answer, "argument container");
        }
    }
}

#[test]
fn content_goes_from_the_instances_container_to_its_replacement_only() {
    let call = PromiseCall::docker(json!({}));
    let copy = call.copy("content", &[]).unwrap();
    assert_eq!(
        copy,
        format!(
            "GET /containers/{OWN}/export\nGET /containers/{OWN}/changes\n\
             PUT /containers/{OWN}-part/archive?path=/\n"
        )
    );
    for container in [OTHER, "postgres", &format!("{OWN}-part")] {
        let answer = call.copy("content", &[("container", container)]);
        refused(answer, "argument container");
    }
    let change = PromiseCall::docker(json!({ "call": "change" }));
    refused(change.copy("content", &[]), "only for");
    refused(call.send("content", &[]), "is a transfer");
}

#[test]
fn content_of_the_instances_container_alone_is_offered_and_fetched() {
    let (change, create) = (
        PromiseCall::docker(json!({ "call": "change" })),
        PromiseCall::docker(json!({})),
    );
    assert_eq!(
        change.copy("offer", &[]).unwrap(),
        format!("GET /containers/{OWN}/export\nGET /containers/{OWN}/changes\n")
    );
    assert_eq!(
        create.copy("fetch", &[]).unwrap(),
        format!("PUT /containers/{OWN}-part/archive?path=/\n")
    );
    for container in [OTHER, "postgres", &format!("{OWN}-part")] {
        let answer = change.copy("offer", &[("container", container)]);
        refused(answer, "argument container");
        let answer = create.copy("fetch", &[("container", container)]);
        refused(answer, "there is no argument \"container\"");
    }
    refused(change.copy("fetch", &[]), "only for");
    for call in ["node", "instance"] {
        let call = PromiseCall::docker(json!({ "call": call }));
        refused(call.copy("offer", &[]), "only for");
        refused(call.copy("fetch", &[]), "only for");
    }
    // A copy counts as one that has run, and has no other container's name.
    let fetched = [("digest", "0123456789abcdef"), ("fetched", "true")];
    let written = create.send("create", &fetched).unwrap();
    assert_eq!(body(&written)["Labels"]["io.wharf.grown-from"], "node");
    let named = [fetched[0], fetched[1], ("name", OTHER)];
    refused(create.send("create", &named), "argument name");
}

#[test]
fn a_disk_has_no_limit_only_after_the_engine_has_refused_one() {
    let unlimited = [("digest", "0123456789abcdef"), ("no-disk-limit", "true")];
    for request in ["create", "create-podman"] {
        let mut call = PromiseCall::docker(json!({}));
        let error = |words: &str| json!({ "message": words });
        call.answer(
            request,
            &unlimited[..1],
            500,
            &error("no space left on device"),
        );
        call.answer(request, &unlimited[..1], 201, &error("project quota"));
        refused(call.send(request, &unlimited), "argument no-disk-limit");
        call.answer(
            request,
            &unlimited[..1],
            500,
            &error("--storage-opt is supported only for overlay over xfs"),
        );
        let written = call.send(request, &unlimited).unwrap();
        assert!(!written.to_lowercase().contains("storageopt"), "{written}");
        assert!(!written.contains("storage_opts"), "{written}");
        let mut always = PromiseCall::docker(json!({ "settings": { "disk_limit": "on" } }));
        always.answer(request, &unlimited[..1], 500, &error("project quota"));
        refused(always.send(request, &unlimited), "argument no-disk-limit");
    }
}

#[test]
fn a_program_is_run_only_to_set_the_calls_ports() {
    let sample = json!({ "call": "change", "kind": "vm", "ports": [22, 80] });
    let mut call = PromiseCall::docker(sample);
    let program = body(&call.send("prepare-ports", &[]).unwrap());
    assert_eq!(
        program["Cmd"],
        json!(["/usr/local/sbin/wharf-vm", "set-ports", "22", "80"])
    );
    let id = "e".repeat(64);
    refused(
        call.send("set-ports", &[("program", &id)]),
        "argument program",
    );
    call.answer("prepare-ports", &[], 201, &json!({ "Id": id }));
    let run = call.send("set-ports", &[("program", &id)]).unwrap();
    assert!(
        run.starts_with(&format!("POST /exec/{id}/start\n")),
        "{run}"
    );
    let container = PromiseCall::docker(json!({ "call": "change" }));
    refused(container.send("prepare-ports", &[]), "prepare-ports");
}

#[test]
fn the_operators_public_network_is_joined_and_neither_made_nor_deleted() {
    let call = PromiseCall::docker(json!({
        "call": "change",
        "kind": "vm",
        "public": { "id": "0p1", "subnet": "198.51.100.0/24", "gateway": "198.51.100.1", "address": "198.51.100.7" },
        "settings": { "public_network": "lan" },
    }));
    let joined = call.send("connect", &[("network", "public")]).unwrap();
    assert!(
        joined.starts_with("POST /networks/lan/connect\n"),
        "{joined}"
    );
    for request in ["create-network", "delete-network", "read-network"] {
        let written = call.send(request, &[("network", "public")]).unwrap();
        assert!(!written.contains("lan"), "{written}");
    }
    let none = PromiseCall::docker(json!({ "call": "change" }));
    refused(none.send("connect", &[("network", "public")]), "connect");
    refused(
        none.send("connect", &[("network", "n0a500200045")]),
        "argument network",
    );
    refused(
        none.send("create-network", &[("network", "earlier")]),
        "argument network",
    );
}

#[test]
fn only_a_survey_sees_the_networks_and_images_of_others() {
    let survey =
        PromiseCall::docker(json!({ "call": "survey", "images": ["localhost/wharf/base:1"] }));
    survey.send("survey-networks", &[]).unwrap();
    refused(
        survey.send("find-image", &[("image", "postgres")]),
        "argument image",
    );
    for call in ["node", "instance", "change", "create"] {
        let call = PromiseCall::docker(json!({ "call": call }));
        refused(call.send("survey-networks", &[]), "only for");
        refused(call.send("find-image", &[]), "only for");
    }
}

#[test]
fn only_a_move_moves_an_instance_and_it_creates_nothing() {
    let digest = [("digest", "0123456789abcdef")];
    let moves = PromiseCall::incus("move");
    let moved = moves.send("move-here", &[]).unwrap();
    assert!(
        moved.starts_with(&format!("POST /1.0/instances/{INCUS}?")),
        "{moved}"
    );
    moves.send("readdress", &digest).unwrap();
    refused(moves.send("create", &digest), "only for");
    refused(
        moves.send("write-file", &[("file", "/etc/motd")]),
        "only for",
    );
    for call in ["node", "instance", "change", "create"] {
        let call = PromiseCall::incus(call);
        refused(call.send("move-here", &[]), "move-here");
        refused(call.send("readdress", &digest), "readdress");
    }
}

#[test]
fn a_file_of_the_blueprint_is_written_and_no_other() {
    let call = PromiseCall::incus("create");
    let written = call.send("write-file", &[("file", "/etc/motd")]).unwrap();
    assert!(written.contains("X-Incus-mode: 0644\n"), "{written}");
    refused(
        call.send("write-file", &[("file", "/etc/shadow")]),
        "argument file",
    );
    refused(
        call.send("make-directory", &[("directory", "/root")]),
        "argument directory",
    );
    let all = PromiseCall::docker(json!({}))
        .send("write-files", &[])
        .unwrap();
    assert!(
        all.ends_with("password, a secret\n  /etc/motd, 8 bytes\n"),
        "{all}"
    );
}

#[test]
fn a_reading_call_changes_nothing() {
    for driver in ["driver-docker", "driver-incus", "driver-simulated"] {
        let file: toml::Table = crate::request_file(driver).parse().unwrap();
        for kind in ["node", "survey", "instance"] {
            let call = PromiseCall::new(
                driver,
                json!({ "call": kind, "settings": { "member": "one" } }),
            );
            for (name, request) in file["request"].as_table().unwrap() {
                if request["method"].as_str() != Some("GET") {
                    refused(call.send(name, &[]), name);
                    refused(call.ask(name, &[], Purpose::Job), name);
                }
            }
        }
    }
}

#[test]
fn a_list_reads_the_listed_instances_and_no_part_of_one() {
    let mut call = PromiseCall::incus("node");
    let listed = |name: &str| format!("/1.0/storage-pools/default/volumes/container/{name}");
    let disks = ["one", "two?project=wharf", "a/console", "three/backups/b"].map(listed);
    call.answer("disks", &[], 200, &json!({ "metadata": disks }));
    for name in ["one", "two"] {
        let read = call.send("read-listed", &[("instance", name)]).unwrap();
        let wanted = format!("GET /1.0/instances/{name}?project=wharf\n");
        assert_eq!(read, wanted);
    }
    for name in [
        "three",
        "one/console",
        "one/logs/lxc.log",
        "one%2Fsftp",
        "a",
        "",
    ] {
        let answer = call.send("read-listed", &[("instance", name)]);
        refused(answer, "argument instance");
    }
}

#[test]
fn an_instance_has_the_forwards_of_its_ports_alone() {
    let sample = |call: &str| {
        let settings = json!({
            "member": "one",
            "uplink": "up",
            "acl": "wharf",
            "publish_cidr": "198.18.0.0/18",
        });
        PromiseCall::new(
            "driver-incus",
            json!({ "call": call, "settings": settings }),
        )
    };
    let create = sample("create");
    let made = create.send("create-forward", &[("port", "20001")]).unwrap();
    assert_eq!(body(&made)["listen_address"], "198.18.0.1");
    refused(
        create.send("create-forward", &[("port", "20002")]),
        "argument port",
    );

    let mut change = sample("change");
    let forward = |address: &str, instance: &str| json!({ "listen_address": address, "config": { "user.wharf.instance": instance } });
    let forwards = json!({ "metadata": [
        forward("198.18.0.1", INCUS),
        forward("198.18.0.2", "wh-240a1045-11111111-3c1e-4f43-9d2b-2c1c1f8f8f8f-1"),
        { "listen_address": "198.18.0.3", "config": {} },
    ] });
    change.answer("forwards", &[], 200, &forwards);
    let deleted = change
        .send("delete-forward", &[("address", "198.18.0.1")])
        .unwrap();
    assert!(deleted.contains("/1.0/networks/wh-240a1045-10.80.1.1/forwards/198.18.0.1?"));
    for address in ["198.18.0.2", "198.18.0.3", "198.18.0.1/../x", ""] {
        let answer = change.send("delete-forward", &[("address", address)]);
        refused(answer, "argument address");
    }
}

#[test]
fn a_wrong_setting_of_a_node_with_docker_is_named() {
    let file = RequestFile::parse(&crate::request_file("driver-docker")).unwrap();
    for (settings, name) in [
        (json!({ "pids_limit": 0 }), "pids_limit: "),
        (json!({ "publish_address": "nowhere" }), "publish_address: "),
        (json!({ "api_version": "1.41/x" }), "api_version: "),
        (json!({ "dns": ["nowhere"] }), "dns: "),
        (json!({ "userns": "host" }), "userns: "),
        (json!({ "userns": "container:other" }), "userns: "),
        (json!({ "userns": "automatic" }), "userns: "),
    ] {
        let error = Requests::new(&file, &settings).unwrap_err();
        assert!(error.starts_with(name), "{error}");
    }
    for userns in ["auto", "auto:size=65536", "keep-id:uid=1,gid=2", "nomap"] {
        Requests::new(&file, &json!({ "userns": userns })).unwrap();
    }
}

#[test]
fn an_instance_on_incus_stays_isolated_when_its_ids_are_chosen_again() {
    let call = PromiseCall::incus("create");
    for text in ["true", "1"] {
        let written = call.send("choose-ids", &[("isolated", text)]).unwrap();
        let wanted = json!({ "config": { "security.idmap.isolated": text } });
        assert_eq!(body(&written), wanted);
    }
    for text in ["false", "0", "", "TRUE"] {
        let asked = call.send("choose-ids", &[("isolated", text)]);
        refused(asked, "argument isolated");
    }
}

#[test]
fn a_wrong_setting_of_incus_is_named() {
    let file = RequestFile::parse(&crate::request_file("driver-incus")).unwrap();
    for (name, wrong) in [
        ("member", json!("")),
        ("pids_limit", json!(0)),
        ("port_isolation", json!("on")),
        ("dns", json!("name.example")),
        ("gateway", json!("here")),
    ] {
        let mut settings = json!({ "member": "one" });
        settings[name] = wrong;
        let why = Requests::new(&file, &settings).unwrap_err();
        assert!(why.starts_with(&format!("{name}: ")), "{why}");
    }
}
