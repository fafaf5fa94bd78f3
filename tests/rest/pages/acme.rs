//! The certificate of the pages from an authority: orders, renewals and failures, against Pebble.

use crate::edit;
use crate::{Expected, has, until_logged, until_true};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use wharf_tests::{Api, Authority, HookMode, Pebble, Ports, Server, metric, simulated_node};

const DOMAIN: &str = "pages.example";
const ISSUED: &str = "the authority has issued a certificate";
/// The end of a look that orders nothing.
const NOT_DUE: &str = "no certificate is due";

fn settings(pebble: &Pebble) -> String {
    format!(
        "[pages]\ndomain = \"{DOMAIN}\"\nlisten = \"127.0.0.1:0\"\n{}{}{}",
        pebble.settings(),
        Ports::take().settings(),
        simulated_node("one", "")
    )
}

fn start(pebble: &Pebble) -> Server {
    Server::start_in(&settings(pebble), &pebble.environment())
        .unwrap()
        .checked_at_end()
}

fn file(server: &Server, name: &str) -> PathBuf {
    server.data_dir().join("acme").join(name)
}

/// Creates an instance, and returns the port of the pages.
fn port(api: &Api) -> u16 {
    let fields = serde_json::json!({ "flavor": "marimo", "name": "demo" });
    super::port(&api.create(&crate::with("container", fields)).is(201))
}

/// The certificate that the pages show to a client that trusts the authority; none if the handshake fails.
fn shown(pebble: &Pebble, port: u16) -> Option<String> {
    let output = Command::new("curl")
        .args(["-sS", "-o", "/dev/null", "-w", "%{certs}", "--resolve"])
        .arg(format!("demo.{DOMAIN}:{port}:127.0.0.1"))
        .arg("--cacert")
        .arg(pebble.root().unwrap())
        .arg(format!("https://demo.{DOMAIN}:{port}/"))
        .output()
        .unwrap();
    let certificates = String::from_utf8(output.stdout).unwrap();
    let first = certificates.split("-----BEGIN CERTIFICATE-----").nth(1)?;
    let first = first.split("-----END").next()?;
    output.status.success().then(|| first.replace('\n', ""))
}

/// The certificate in the file of the server.
fn kept(server: &Server) -> String {
    let text = std::fs::read_to_string(file(server, "pages.pem")).unwrap();
    let first = text.split("-----BEGIN CERTIFICATE-----").nth(1).unwrap();
    first.split("-----END").next().unwrap().replace('\n', "")
}

/// Waits until new connections get the certificate of the file.
fn until_shown(server: &Server, pebble: &Pebble, port: u16) {
    until_true("the certificate is taken", || {
        shown(pebble, port).as_deref() == Some(&*kept(server))
    });
}

fn count(server: &Server, words: &str) -> usize {
    server.log().matches(words).count()
}

/// Starts the server again, and waits until it has looked whether a certificate is due.
fn run_and_look(server: &mut Server) {
    let before = count(server, NOT_DUE);
    server.run().unwrap();
    until_true("a certificate is not due", || {
        count(server, NOT_DUE) > before
    });
}

fn presented(pebble: &Pebble) -> usize {
    let calls = pebble.hook_calls();
    calls
        .iter()
        .filter(|call| call.contains(" present "))
        .count()
}

#[test]
fn a_certificate_is_ordered_kept_taken_and_renewed() {
    let pebble = Pebble::start().unwrap();
    let mut server = start(&pebble);
    let ann = server.user("ann@example.com").unwrap();
    let pages = port(&ann);
    until_logged(&server, ISSUED);
    until_shown(&server, &pebble, pages);
    let record = format!("--fast present _acme-challenge.{DOMAIN} ");
    let calls = pebble.hook_calls();
    assert!(calls[0].starts_with(&record), "{calls:?}");
    assert_eq!(calls[1], calls[0].replace("present", "cleanup"));
    assert_eq!((calls.len(), pebble.orders()), (2, 1));
    let mut keys = Vec::new();
    for name in ["pages.pem", "account.json", "state.json", "hook.log"] {
        let path = file(&server, name);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.split(['\n', '"']).map(ToOwned::to_owned);
        keys.extend(lines.filter(|line| line.len() >= 60));
    }
    let (log, first) = (server.log(), kept(&server));
    assert!(keys.len() > 3 && keys.iter().all(|key| !log.contains(key)));
    let said = server.cli(&["check"]).unwrap();
    let words = format!("the certificate for *.{DOMAIN} is valid for 18");
    assert!(said.contains(&words), "{said}");

    // A restart orders nothing.
    server.terminate().unwrap();
    run_and_look(&mut server);
    assert_eq!(pebble.orders(), 1);

    // A certificate near its end is renewed, by the same account, while the server runs.
    let near = Authority::new().unwrap();
    let near = near
        .issue_expired("near", &[&format!("*.{DOMAIN}")])
        .unwrap();
    let [key, cert] = [near.key, near.cert].map(|path| std::fs::read_to_string(path).unwrap());
    let text = std::fs::read_to_string(file(&server, "pages.pem")).unwrap();
    let authority = text.lines().next().unwrap();
    let near = format!("{authority}\n{key}{cert}");
    std::fs::write(file(&server, "pages.pem"), near).unwrap();
    let account = std::fs::read(file(&server, "account.json")).unwrap();
    let said = server.cli(&["check"]).unwrap();
    assert!(said.contains("is valid for 0 days more"), "{said}");
    server.hang_up().unwrap();
    until_true("the certificate is renewed", || count(&server, ISSUED) == 2);
    assert_ne!(kept(&server), first);
    assert_eq!(
        std::fs::read(file(&server, "account.json")).unwrap(),
        account
    );
    assert_eq!(pebble.orders(), 2);
    let ann = server.again(&ann);
    let pages = super::port(&ann.get("/api/instance/").is(200)[0]);
    until_shown(&server, &pebble, pages);
    let ends = "wharf_certificate_expiry_timestamp_seconds{listener=\"pages\"}";
    assert!(metric(&ann, ends).unwrap() > 1.9e9);
}

#[test]
fn a_failure_is_told_and_a_restart_does_not_order_again() {
    let pebble = Pebble::start().unwrap();
    pebble.set_hook(HookMode::Fails).unwrap();
    let mut server = start(&pebble);
    let ann = server.user("ann@example.com").unwrap();
    let pages = port(&ann);
    let words = "the hook failed to present: exit status: 3: no such zone";
    until_logged(&server, words);
    assert_eq!(shown(&pebble, pages), None);
    let said = server.cli(&["check"]).unwrap_err().to_string();
    let told = format!(
        "error: setting `pages.acme`: no certificate for *.{DOMAIN} after attempt 1: {words}"
    );
    assert!(said.contains(&told), "{said}");
    assert!(metric(&ann, "wharf_acme_failures ").unwrap() > 0.0);
    server.kill().unwrap();
    run_and_look(&mut server);
    assert_eq!((presented(&pebble), pebble.orders()), (1, 1));

    // A reload does not wait. A hook that does not end is ended with all that it started.
    for (mode, words) in [
        (
            HookMode::Hangs,
            "the hook failed to present: stopped after 2 s",
        ),
        (HookMode::Lies, "the authority refuses: "),
    ] {
        pebble.set_hook(mode).unwrap();
        server.hang_up().unwrap();
        until_logged(&server, words);
    }
    assert!(!pebble.hook_lives().unwrap());
    has(server.log(), "No TXT records found");
    // The order of the failed hooks was one.
    assert_eq!((presented(&pebble), pebble.orders()), (3, 1));
    assert!(pebble.hook_calls().last().unwrap().contains(" cleanup "));
    pebble.set_hook(HookMode::Works).unwrap();
    server.hang_up().unwrap();
    until_logged(&server, ISSUED);
    let ann = server.again(&ann);
    let pages = super::port(&ann.get("/api/instance/").is(200)[0]);
    until_shown(&server, &pebble, pages);
    assert_eq!(pebble.orders(), 2);
    assert!(!server.cli(&["check"]).unwrap().contains("pages.acme"));
}

#[test]
fn a_server_that_is_killed_goes_on_with_its_order_later() {
    let pebble = Pebble::start().unwrap();
    pebble.set_hook(HookMode::Hangs).unwrap();
    let mut server = start(&pebble);
    until_true("the hook is called", || presented(&pebble) == 1);
    server.kill().unwrap();
    pebble.set_hook(HookMode::Works).unwrap();
    let state = std::fs::read(file(&server, "state.json")).unwrap();
    run_and_look(&mut server);
    assert_eq!(presented(&pebble), 1);
    let said = server.cli(&["check"]).unwrap_err().to_string();
    assert!(said.contains("was cut off"), "{said}");
    server.hang_up().unwrap();
    until_logged(&server, ISSUED);
    let calls = pebble.hook_calls();
    let words = |call: &String| call.split(' ').nth(1).unwrap().to_owned();
    let words: Vec<_> = calls.iter().map(words).collect();
    assert_eq!(words, ["present", "cleanup", "present", "cleanup"]);
    assert!(calls[0].ends_with(calls[1].rsplit(' ').next().unwrap()));

    // A server that is killed between the certificate and its state raises no alarm, and orders nothing.
    server.kill().unwrap();
    std::fs::write(file(&server, "state.json"), &state).unwrap();
    server.run().unwrap();
    until_true("the state is that of a success", || {
        !server.cli(&["check"]).unwrap().contains("pages.acme")
    });
    let calls = pebble.hook_calls();
    let again = calls.last().unwrap();
    assert_eq!((again, calls.len(), pebble.orders()), (&calls[1], 5, 1));
    let ann = server.user("ann@example.com").unwrap();
    assert!(metric(&ann, "wharf_acme_failures ").unwrap() < 1.0);
    let left = std::fs::read_to_string(file(&server, "state.json")).unwrap();
    assert!(left.contains("\"order\":null"), "an order is left");

    // A server that is killed after the authority has issued the certificate gets that one.
    let issued = kept(&server);
    server.kill().unwrap();
    std::fs::write(file(&server, "state.json"), state).unwrap();
    std::fs::remove_file(file(&server, "pages.pem")).unwrap();
    server.run().unwrap();
    server.hang_up().unwrap();
    until_true("the certificate is there again", || {
        count(&server, ISSUED) == 2
    });
    assert_eq!((kept(&server), pebble.orders()), (issued, 1));
}

#[test]
fn a_change_of_the_authority_orders_at_once() {
    let pebble = Pebble::start().unwrap();
    let mut server = start(&pebble);
    let issued = |server: &Server, times: usize| {
        until_true("the certificate is issued", || {
            count(server, ISSUED) == times
        });
        assert_eq!(pebble.orders(), times);
        kept(server)
    };
    let first = issued(&server, 1);
    // By another name it is another authority for the server.
    let [one, other] =
        ["127.0.0.1", "localhost"].map(|host| format!("directory = \"https://{host}:"));
    edit(&server, &one, &other);
    server.hang_up().unwrap();
    let second = issued(&server, 2);
    assert_ne!(second, first);

    // Neither does a start wait for the pause after the certificate of another authority.
    server.terminate().unwrap();
    edit(&server, &other, &one);
    server.run().unwrap();
    assert_ne!(issued(&server, 3), second);
    server.terminate().unwrap();
    run_and_look(&mut server);
    assert_eq!(pebble.orders(), 3);
}

#[test]
fn the_authority_is_asked_when_to_renew() {
    let pebble = Pebble::start().unwrap();
    if !pebble.has_renewal_information().unwrap() {
        println!("NOT RUN: this pebble has no renewal information; 2.6 of Debian 13 has");
        return;
    }
    let mut server = start(&pebble);
    until_logged(&server, ISSUED);
    server.terminate().unwrap();
    run_and_look(&mut server);
    let log = server.log();
    let said = (log.lines()).find(|line| line.contains("the authority says when to renew"));
    let said = said.unwrap_or_else(|| panic!("{log}"));
    let at = |name: &str| -> u64 {
        let value = said.split(name).nth(1).unwrap().split(' ').next().unwrap();
        value.parse().unwrap()
    };
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    assert!(now < at("from=") && at("from=") < at("to="), "{said}");
    assert_eq!(pebble.orders(), 1);
}

#[test]
fn a_change_of_the_domain_orders_at_once_and_removes_the_earlier_record() {
    let pebble = Pebble::start().unwrap();
    pebble.set_hook(HookMode::Hangs).unwrap();
    let mut server = start(&pebble);
    until_true("the hook is called", || presented(&pebble) == 1);
    server.kill().unwrap();
    pebble.set_hook(HookMode::Works).unwrap();
    let record = pebble.hook_calls()[0].clone();
    edit(&server, DOMAIN, "other.example");
    server.run().unwrap();
    until_logged(&server, ISSUED);
    let calls = pebble.hook_calls();
    assert_eq!(calls[1], record.replace("present", "cleanup"));
    let of_other = |call: &String| call.contains("_acme-challenge.other.example");
    assert!(calls[2..].iter().all(of_other), "{calls:?}");
}

fn set_mode(path: &str, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// The path after some text in the settings.
fn path_after<'a>(settings: &'a str, before: &str) -> &'a str {
    let rest = settings.split(before).nth(1).unwrap();
    rest.split('"').next().unwrap()
}

#[test]
fn a_hook_that_others_can_change_is_refused() {
    let pebble = Pebble::start().unwrap();
    let settings = settings(&pebble);
    let hook = path_after(&settings, "hook = [\"");
    set_mode(hook, 0o777);
    let error = Server::refused(&settings).unwrap();
    assert!(error.contains("`pages.acme.hook`"), "{error}");
}

#[test]
fn a_reload_refuses_files_that_others_could_use() {
    let pebble = Pebble::start().unwrap();
    let server = start(&pebble);
    until_logged(&server, ISSUED);
    let settings = settings(&pebble);
    edit(&server, "https://127.0.0.1:", "https://localhost:");
    for (before, open, closed, setting) in [
        ("hook = [\"", 0o777, 0o755, "hook"),
        ("key_file = \"", 0o644, 0o600, "external_account.key_file"),
    ] {
        let path = path_after(&settings, before);
        set_mode(path, open);
        server.hang_up().unwrap();
        let words = "the configuration stays as it was: setting `pages.acme.";
        until_logged(&server, &format!("{words}{setting}`: {path} has mode"));
        set_mode(path, closed);
    }
    assert!(!server.log().contains("the configuration is reloaded"));
    assert_eq!(pebble.orders(), 1);
    server.hang_up().unwrap();
    until_true("the settings are taken", || pebble.orders() == 2);
}
