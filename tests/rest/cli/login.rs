//! Signing in, and the file of profiles.

use super::refused;
use crate::sign_in::ConsoleBrowser;
use crate::{Expected, start};
use serde_json::json;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use wharf_tests::{Server, Shell};

#[test]
fn a_key_is_read_from_stdin_checked_and_kept_for_the_owner_only() {
    let (server, api) = start();
    let shell = Shell::new().unwrap();
    let login = ["login", server.base_url(), "--with-key"];
    let wrong = shell
        .run_with(&login, &[], "wharf_0123456789abcdef_wrong\n")
        .unwrap();
    assert_eq!(wrong.code, Some(4), "{wrong:?}");
    assert_eq!(shell.run_with(&login, &[], "\n").unwrap().code, Some(2));
    assert!(!shell.config().exists(), "a refused key is not kept");

    let signed_in = shell
        .run_with(&login, &[], &format!("{}\n", api.key()))
        .unwrap();
    let signed_in = signed_in.succeeded().unwrap();
    assert!(!format!("{signed_in:?}").contains(api.key()));
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(shell.config()), 0o600);
    assert_eq!(mode(shell.config().parent().unwrap().to_owned()), 0o700);
    shell.ok(&["ls"]).unwrap();
    let address = server.base_url().strip_prefix("http://").unwrap();
    assert!(shell.ok(&["whoami"]).unwrap().contains(address));

    fs::set_permissions(shell.config(), Permissions::from_mode(0o644)).unwrap();
    refused(&shell, &["ls"], 1, "chmod 0600");
}

#[test]
fn profiles_are_chosen_by_option_variable_and_last_login() {
    let (first, _) = start();
    let (second, _) = start();
    let shell = Shell::new().unwrap();
    for (server, profile, email) in [
        (&first, "one", "ann@example.com"),
        (&second, "two", "ann@example.com"),
    ] {
        let key = server.cli(&["key", "new", email]).unwrap();
        let login = [
            "login",
            server.base_url(),
            "--with-key",
            "--profile",
            profile,
        ];
        shell
            .run_with(&login, &[], &key)
            .unwrap()
            .succeeded()
            .unwrap();
        shell.ok(&["create", &format!("box-{profile}")]).unwrap();
    }
    let ls = |args: &[&str], variables: &[(&str, &str)]| {
        let args = [&["ls"], args].concat();
        shell
            .run_with(&args, variables, "")
            .unwrap()
            .succeeded()
            .unwrap()
            .stdout
    };
    assert!(ls(&[], &[]).contains("box-two"));
    assert!(ls(&["--profile", "one"], &[]).contains("box-one"));
    assert!(ls(&[], &[("WHARF_PROFILE", "one")]).contains("box-one"));
    let key = second.cli(&["key", "new", "ann@example.com"]).unwrap();
    let variables = [
        ("WHARF_URL", second.base_url()),
        ("WHARF_API_KEY", key.trim()),
    ];
    assert!(ls(&[], &variables).contains("box-two"));
    assert!(ls(&["--profile", "one"], &variables).contains("box-one"));

    // `--revoke` ends the key itself, also elsewhere.
    let config = fs::read_to_string(shell.config()).unwrap();
    shell.ok(&["logout", "--revoke"]).unwrap();
    assert_eq!(shell.run(&["ls"]).unwrap().code, Some(4));
    assert!(ls(&["--profile", "one"], &[]).contains("box-one"));
    wharf_tests::write_private(&shell.config(), config.as_bytes()).unwrap();
    assert_eq!(shell.run(&["ls"]).unwrap().code, Some(4));
    shell.ok(&["logout", "--profile", "one"]).unwrap();
    assert_eq!(
        shell.run(&["ls", "--profile", "one"]).unwrap().code,
        Some(4)
    );
    first.finish().unwrap();
}

#[test]
fn a_url_that_is_no_server_is_refused_before_the_key_is_read() {
    let shell = Shell::new().unwrap();
    for url in [
        "example.org",
        "ftp://example.org",
        "https://user:pass@example.org",
        "https://",
    ] {
        refused(
            &shell,
            &["login", url, "--with-key"],
            2,
            "https://wharf.example.org",
        );
    }
}

/// Starts a sign-in, and returns it with the code that it shows.
fn begin(shell: &Shell, server: &Server) -> (Child, BufReader<std::process::ChildStderr>, String) {
    let mut login = shell.command(&["login", server.base_url()]);
    let mut login = login.stderr(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(login.stderr.take().unwrap());
    let (mut page, mut code) = (String::new(), String::new());
    shown.read_line(&mut page).unwrap();
    shown.read_line(&mut code).unwrap();
    let page = page.trim().strip_prefix("Open ").unwrap().to_owned();
    let code = code.trim().strip_prefix("and confirm the code ").unwrap();
    let code = code.trim_end_matches('.').to_owned();
    assert!(page.ends_with(&format!("/device#{code}")), "{page}");
    (login, shown, code)
}

#[test]
fn a_sign_in_with_a_browser_waits_for_the_confirmation() {
    let (server, _) = start();
    let shell = Shell::new().unwrap();
    let browser = ConsoleBrowser::accepted(&server, "bob@example.com");
    let answer = |code: &str, deny: bool| {
        let body = json!({ "user_code": code, "deny": deny });
        let answer = browser.send("POST", "/auth/device/approve/", &body);
        answer.is(204);
    };
    let (mut login, mut shown, code) = begin(&shell, &server);
    answer(&code, true);
    assert_eq!(login.wait().unwrap().code(), Some(4));
    let mut rest = String::new();
    shown.read_line(&mut rest).unwrap();
    assert!(
        rest.contains("denied") && !shell.config().exists(),
        "{rest}"
    );

    let (mut login, mut shown, code) = begin(&shell, &server);
    answer(&code, false);
    let mut rest = String::new();
    shown.read_line(&mut rest).unwrap();
    assert!(login.wait().unwrap().success(), "{rest}");
    assert!(
        rest.starts_with("Signed in to ") && !rest.contains("wharf_"),
        "{rest}"
    );
    let who = shell
        .json(&["whoami"], "GET", "/api/session/", 200)
        .unwrap();
    assert_eq!(who["email"], "bob@example.com");
    shell.ok(&["create", "box"]).unwrap();
    shell.ok(&["logout", "--revoke"]).unwrap();
}
