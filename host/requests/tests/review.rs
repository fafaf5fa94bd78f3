//! The review of a file: its words, its findings, and requests of sample calls.

use wharf_requests::{Purpose, RequestFile, Requests, SampleCall};

const FILE: &str = r#"
kind = "sample"
about = "An engine of the tests."

[settings.project]
about = "The project."
default = "wharf"

[settings.key]
about = "Its key."
type = "string"
optional = true

[values]
name = "m-{instance}"
size = [{ when = "kind = vm", is = "{size.mem_gib + 384}" }, { is = "{size.mem_gib}" }]

[request.list]
about = "Lists machines."
method = "GET"
path = "/machines"
calls = "instance"
query = { project = "{settings.project}", "page?" = "{argument.page}", filters = { owner = ["{installation}"] } }
arguments.page = { max = 9, optional = true }
learn.machine = { status = [200, 206], items = "", where = { "/name" = "{value.name}" }, pointer = "/id", pattern = "[0-9]+" }

[request.create]
about = "Creates the machine."
method = "POST"
path = "/machines/{value.name}"
calls = "create"
headers = { X-Digest = "{argument.digest}" }

[request.create.arguments]
digest = { pattern = "[0-9a-f]{4}" }
fast = { flag = true, when = "kind = vm" }

[request.create.body]
memory = "{value.size}"
"fast?" = "{argument.fast}"
labels = { each = "environment", key = "{variable.name}", item = "{variable.value}" }
ports = { each = "published", item = { port = "{published.instance_port}", host = "{settings.project}" } }

[request.files]
about = "Writes the files."
method = "PUT"
path = "/machines/{value.name}/files"
calls = "create"
body = "archive"

[request.delete]
about = "Deletes a machine that the engine has listed."
method = "DELETE"
path = "/machines/{argument.machine}"
arguments.machine = { one-of = ["{learnt.machine}"] }
calls = "change"

[transfer.content]
about = "Copies the content."
read = "/machines/{value.name}/export"
changes = "/machines/{value.name}/changes"
write = "/machines/{value.name}-part"
calls = "create"

[transfer.fetch]
about = "Copies it from elsewhere."
write = "/machines/{value.name}-part"
calls = "create"

[transfer.offer]
about = "Offers it."
read = "/machines/{value.name}/export"
changes = "/machines/{value.name}/changes"
calls = "change"

[transfer.send]
about = "Sends a snapshot."
read = "/snapshots/{snapshot.id}"
changes = "/snapshots/{snapshot.id}/changes"
calls = "send"
"#;

const WORDS: &str = r#"Engines of kind "sample". An engine of the tests.

The driver may read:
  list: Lists machines.
      GET /machines?filters=…&page?={argument.page}&project={settings.project}
      filters:
        owner: {installation}
      only in a call about one instance
      the driver chooses {argument.page}: an integer up to 9, or nothing
      its answer 200 or 206 tells {learnt.machine}: an id at "/id" of the form [0-9]+, for each item of the list at "", where "/name" is {value.name}

The driver may change:
  create: Creates the machine.
      POST /machines/{value.name}
      only in the call that creates an instance
      the driver chooses {argument.digest}: text of the form [0-9a-f]{4}
      the driver chooses {argument.fast}: true or false, when kind = vm
      header X-Digest: {argument.digest}
      with the body:
        fast (left out if empty): {argument.fast}
        labels: for each of {environment}
          {variable.name}: {variable.value}
        memory: {value.size}
        ports: for each of {published}
          -:
            host: {settings.project}
            port: {published.instance_port}
  delete: Deletes a machine that the engine has listed.
      DELETE /machines/{argument.machine}
      only in a call that changes one instance
      the driver chooses {argument.machine}: {learnt.machine}
  files: Writes the files.
      PUT /machines/{value.name}/files
      only in the call that creates an instance
      with an archive of the blueprint's files

The driver may copy:
  content: Copies the content.
      from /machines/{value.name}/export to /machines/{value.name}-part
      by the list of changes at /machines/{value.name}/changes
      only in the call that creates an instance
  fetch: Copies it from elsewhere.
      from an engine of another node or a backup to /machines/{value.name}-part
      only in the call that creates an instance
  offer: Offers it.
      from /machines/{value.name}/export to an engine of another node
      by the list of changes at /machines/{value.name}/changes
      only in a call that changes one instance
  send: Sends a snapshot.
      from /snapshots/{snapshot.id} to a backup
      by the list of changes at /snapshots/{snapshot.id}/changes
      only in the call that sends a snapshot's content

Values:
  {value.name}: m-{instance}
  {value.size}:
    when kind = vm: {size.mem_gib + 384}
    otherwise: {size.mem_gib}

Settings of a node:
  key: Its key. (optional)
  project: The project. (default "wharf")
"#;

#[test]
fn the_words_have_every_request_choice_value_and_setting() {
    let file = RequestFile::parse(FILE).unwrap();
    let words = file.explain();
    assert_eq!(words, WORDS, "{words}");
}

#[test]
fn words_of_a_file_hide_nothing() {
    const QUERY: &str = r#"query = { project = "{settings.project}", "page?" = "{argument.page}", filters = { owner = ["{installation}"] } }"#;
    for (old, new, words) in [
        (
            QUERY,
            r#"query = "{value.q}""#,
            "      with the query: {value.q}\n",
        ),
        (
            QUERY,
            r#"query = { with = ["value.q"], project = "x" }"#,
            "      with the query:\n        the members of {value.q}\n        project: x\n",
        ),
        (
            QUERY,
            r#"query = [{ when = "argument.page", is = { all = "1" } }]"#,
            "      with the query:\n        when argument.page:\n          all: 1\n",
        ),
        (
            QUERY,
            r#"query = { each = "value.list", key = "{item}", item = "1" }"#,
            "      with the query: for each of {value.list}\n        {item}: 1\n",
        ),
        (
            r#""Lists machines.""#,
            r#""Fine.\n\u001b[8m\u202e""#,
            "  list: Fine.\\n\\u{1b}[8m\\u{202e}\n",
        ),
        (
            r#"pointer = "/id", pattern = "[0-9]+" }"#,
            r#"pointer = "/id", pattern = "[0-9]+" }
learn.total = { status = 200, items = "/rows", sum = "/size" }
learn.first = { status = 200, pointer = "/size", number = "first" }
learn.full = { status = 500, says = ["No space"] }"#,
            r#"      its answer 200 tells {learnt.first}: the first number above zero at "/size"
      its answer 500 tells {learnt.full}: whether it says one of ["no space"]
"#,
        ),
    ] {
        assert!(FILE.contains(old), "{old}");
        let file = FILE.replace(old, new);
        let values = "[values]\nq = { all = \"1\" }\nlist = [\"a\"]";
        let file = RequestFile::parse(&file.replace("[values]", values)).unwrap();
        let explained = file.explain();
        assert!(explained.contains(words), "{explained}");
    }
    let sample = SampleCall::parse("{}").unwrap();
    let file = FILE
        .replace("m-{instance}", "m\u{202e}")
        .replace("{value.name}", "m");
    let file = file.replace("\"{value.size}\"", "\"{value.name}\"");
    let digest = [("digest".to_owned(), "00ff".to_owned())];
    let file = RequestFile::parse(&file).unwrap();
    let written = sample.render(&file, "create", &digest).unwrap();
    assert!(
        written.contains("\n  \"memory\": \"m\\u{202e}\",\n"),
        "{written}"
    );
    let wrong = FILE.replace("[0-9]+", "[0-9]\u{202e}\u{1b}");
    let error = RequestFile::parse(&wrong).unwrap_err();
    assert!(!error.contains(['\u{202e}', '\u{1b}']), "{error}");
}

#[test]
fn openings_and_unused_parts_are_found() {
    let file = RequestFile::parse(FILE).unwrap();
    assert_eq!(file.lint(), ["settings.key: no request uses it"]);
    for (old, new, finding) in [
        (
            r#"path = "/machines/{value.name}/files""#,
            r#"path = "/machines/files""#,
            "request.files: nothing ties this change to the instance of the call",
        ),
        (
            r#"one-of = ["{learnt.machine}"]"#,
            r#"pattern = "[0-9]+""#,
            "request.delete: the path /machines/{argument.machine} leaves a part to the driver",
        ),
        (
            r#"pattern = "[0-9a-f]{4}""#,
            r#"pattern = ".*""#,
            "request.create: the argument \"digest\" may be any text",
        ),
        (
            r#""fast?" = "{argument.fast}""#,
            "",
            "request.create: the argument \"fast\" has no use",
        ),
        (
            r#"where = { "/name" = "{value.name}" }, "#,
            "",
            "request.list: every item of the answer becomes {learnt.machine}",
        ),
        (
            r#""/name" = "{value.name}""#,
            r#""/owner" = "{installation}""#,
            "request.delete: nothing ties this change to the instance of the call",
        ),
        (
            r#"one-of = ["{learnt.machine}"]"#,
            r#"one-of = ["{learnt.machine}", "all"]"#,
            "request.delete: nothing ties this change to the instance of the call",
        ),
        (
            r#"path = "/machines/{value.name}/files""#,
            "path = \"/machines/files\"\nquery = { \"a?\" = [{ when = \"network.id\", is = \"1\" }] }",
            "request.files: nothing ties this change to the instance of the call",
        ),
        (
            r#"read = "/machines/{value.name}/export""#,
            r#"read = "/machines/export""#,
            "transfer.content: nothing ties /machines/export to the instance of the call",
        ),
        (
            r#"changes = "/machines/{value.name}/changes""#,
            r#"changes = "/machines/changes""#,
            "transfer.content: nothing ties /machines/changes to the instance of the call",
        ),
        (
            r#"read = "/machines/{value.name}/export""#,
            r#"read = "/machines/export""#,
            "transfer.offer: nothing ties /machines/export to the instance of the call",
        ),
        (
            r#"write = "/machines/{value.name}-part""#,
            r#"write = "/machines/part""#,
            "transfer.fetch: nothing ties /machines/part to the instance of the call",
        ),
        (
            r#"path = "/machines/{value.name}/files""#,
            "path = \"/machines/{argument.port.instance_port}\"\narguments.port = { of = \"published\" }",
            "request.files: nothing ties this change to the instance of the call",
        ),
        (
            r#"memory = "{value.size}""#,
            "",
            "values.size: no request uses it",
        ),
    ] {
        assert!(FILE.contains(old), "{old}");
        let file = RequestFile::parse(&FILE.replace(old, new)).unwrap();
        let findings = file.lint();
        assert!(findings.iter().any(|one| one == finding), "{findings:?}");
    }
}

#[test]
fn values_of_a_path_are_read_too() {
    let values = "[values]\npart = \"{argument.part}\"\nowner = \"{instance}\"";
    let argument = r#"calls = "create"
arguments.part = { pattern = "[0-9]+" }"#;
    for (old, new, findings) in [
        (
            "[request.files]",
            r#"path = "/machines/{value.name}-{value.part}""#,
            &[
                "request.files: the path /machines/{value.name}-{value.part} leaves a part to the driver",
            ][..],
        ),
        (
            "[request.files]",
            r#"path = "/machines/{value.part}""#,
            &[
                "request.files: the path /machines/{value.part} leaves a part to the driver",
                "request.files: nothing ties this change to the instance of the call",
            ],
        ),
        (
            "[request.files]",
            "path = \"/machines\"\nheaders = { X-A = \"{value.part}\", X-B = \"{value.owner}\" }",
            &[],
        ),
        (
            "[request.files]",
            "path = \"/machines/{argument.part}\"\nheaders = { X-B = \"{value.owner}\" }",
            &[
                "request.files: the path /machines/{argument.part} leaves a part to the driver",
                "request.files: nothing ties this change to the instance of the call",
            ],
        ),
        (
            "[transfer.content]",
            "read = \"/machines/{value.name}\"\nchanges = \"/changes/{value.part}\"\nwrite = \"/{value.name}-{value.part}\"",
            &[
                "transfer.content: the path /changes/{value.part} leaves a part to the driver",
                "transfer.content: nothing ties /changes/{value.part} to the instance of the call",
                "transfer.content: the path /{value.name}-{value.part} leaves a part to the driver",
            ],
        ),
    ] {
        let (before, after) = FILE.split_once(old).unwrap();
        let end = after.find("\n[").unwrap_or(after.len());
        let (_, after) = after.split_at(end);
        let method = if old.starts_with("[request") {
            "method = \"PUT\""
        } else {
            ""
        };
        let text = format!("{before}{old}\nabout = \"x\"\n{method}\n{new}\n{argument}\n{after}");
        let file = RequestFile::parse(&text.replace("[values]", values)).unwrap();
        let name = old.trim_matches(['[', ']']);
        let found = file
            .lint()
            .into_iter()
            .filter(|finding| finding.starts_with(name));
        assert_eq!(found.collect::<Vec<_>>(), findings, "{new}");
    }
}

#[test]
fn a_request_is_shown_with_its_files_and_no_secret() {
    let requests = Requests::new(&RequestFile::parse(FILE).unwrap(), &serde_json::Value::Null);
    let (requests, sample) = (requests.unwrap(), SampleCall::parse("{}").unwrap());
    let show = |name: &str, arguments: &[(&str, &str)], purpose| {
        let text = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let arguments: Vec<_> = arguments.iter().map(text).collect();
        requests.render(&sample.scope, name, &arguments, purpose)
    };
    let name = "m-0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";
    let created = show("create", &[("digest", "00ff")], Purpose::Show).unwrap();
    assert_eq!(
        created.to_string(),
        format!(
            "POST /machines/{name}\nX-Digest: 00ff\n\n{}\n",
            r#"{
  "labels": {
    "LANG": "C.UTF-8"
  },
  "memory": 1,
  "ports": [
    {
      "host": "wharf",
      "port": 22
    }
  ]
}"#
        )
    );
    let files = show("files", &[], Purpose::Show).unwrap().to_string();
    assert_eq!(
        files,
        format!(
            "PUT /machines/{name}/files\n\nAn archive of these files:\n  \
             /etc/wharf/first-boot/password, a secret\n  /etc/motd, 8 bytes\n"
        )
    );
    let copy = |of: &str| {
        let targets = requests.transfer(&sample.scope, of, &[]);
        targets.map(|targets| targets.to_string())
    };
    let to = format!("PUT /machines/{name}-part\n");
    let content = copy("content").unwrap();
    assert!(content.ends_with(&to), "{content}");
    assert_eq!(copy("fetch").unwrap(), to);
    let offered = copy("offer").unwrap();
    assert_eq!(format!("{offered}{to}"), content);
    let refusal = show("create", &[], Purpose::Show).unwrap_err().0;
    assert_eq!(refusal, "create: argument digest: required");
}

#[test]
fn a_sample_has_the_default_members_and_no_unknown_ones() {
    let sample = SampleCall::parse(r#"{ "call": "change", "kind": "vm", "ports": [80] }"#).unwrap();
    let subject = sample.scope.subject.unwrap();
    assert!(sample.scope.changes && subject.creation.is_none());
    assert_eq!(subject.vm_ports, Some(vec![80]));
    for (text, words) in [
        ("[]", "map"),
        (r#"{ "cores": 2 }"#, "cores"),
        (r#"{ "instance": "one" }"#, "instance: must be a UUID"),
        (r#"{ "environment": ["LANG"] }"#, "NAME=VALUE"),
    ] {
        let error = SampleCall::parse(text).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_example_of_the_documentation_is_valid() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plugins.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, language) = page.split_once("### The language").unwrap();
    let (_, example) = language.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let file = RequestFile::parse(example).unwrap();
    assert_eq!(file.lint(), [""; 0]);
    let sample = r#"{ "settings": { "publish_address": "192.0.2.1" }, "learnt": { "operation": ["6d6c"] } }"#;
    let sample = SampleCall::parse(sample).unwrap();
    let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    for (name, arguments) in [
        ("create", vec![text("digest", "0123456789abcdef")]),
        (
            "wait",
            vec![text("operation", "6d6c"), text("seconds", "5")],
        ),
    ] {
        sample.render(&file, name, &arguments).unwrap();
    }
}
