//! `[[registry]]`: accounts at registries of images, and the files with their passwords.

use crate::check::checked;
use crate::{edit, has, stores_none, until_logged};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wharf_testkit::workspace::wharf_binary;
use wharf_tests::{Ports, Server, simulated_node, write_private};

const PASSWORD: &str = "a-password-of-the-tests";

fn password() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("password");
    write_private(&file, format!("{PASSWORD}\n").as_bytes()).unwrap();
    (dir, file)
}

fn account(host: &str, user: &str, password: &Path) -> String {
    format!("[[registry]]\n{host}\nuser = \"{user}\"\npassword_file = {password:?}\n")
}

fn settings(accounts: &str) -> String {
    format!(
        "{}{accounts}{}",
        Ports::take().settings(),
        simulated_node("one", "")
    )
}

#[test]
fn an_error_names_its_setting_and_says_what_is_right() {
    let (_dir, file) = password();
    let of = |host: &str, user: &str| account(host, user, &file);
    let example = of("host = \"registry.example\"", "wharf");
    for (accounts, expected) in [
        (
            of("host = \"https://registry.example\"", "wharf"),
            "without a scheme and a path",
        ),
        (
            of("host = \"registry\"", "wharf"),
            "`registry.host`: \"registry\" must be",
        ),
        (
            of("host = \"registry.example:5000\"", ""),
            "`registry.registry.example:5000.user`",
        ),
        (
            of("", "a:b"),
            "`registry.user`: must be the name of an account",
        ),
        (
            format!("{example}{}", example.replace("registry.e", "Registry.E")),
            "is used twice",
        ),
        (
            of("", "a") + &of("", "b"),
            "only one [[registry]] may have none",
        ),
        (
            of("password = \"12345678\"", "wharf"),
            "unknown field `password`",
        ),
    ] {
        let message = Server::refused(&settings(&accounts)).unwrap();
        has(&message, expected);
    }
}

#[test]
fn a_file_that_others_read_or_without_a_password_is_refused() {
    let (_dir, file) = password();
    let settings = settings(&account("host = \"registry.example\"", "wharf", &file));
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let message = Server::refused(&settings).unwrap();
    for part in [
        "`registry.registry.example.password_file`",
        "mode 0640",
        "chmod 0600",
    ] {
        has(&message, part);
    }
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    for wrong in ["", "short", "two\nlines of it", &"x".repeat(4097)] {
        fs::write(&file, wrong).unwrap();
        let message = Server::refused(&settings).unwrap();
        has(&message, "`registry.registry.example.password_file`");
        has(&message, "8 to 4096 bytes");
        assert!(wrong.is_empty() || !message.contains(wrong), "{message}");
    }
    fs::remove_file(&file).unwrap();
    let message = Server::refused(&settings).unwrap();
    has(&message, "`registry.registry.example.password_file`");
}

#[test]
fn a_reload_reads_the_passwords_again_and_keeps_the_earlier_ones_if_one_is_wrong() {
    let (_dir, file) = password();
    let accounts = account("host = \"registry.example\"", "wharf", &file);
    let server = crate::serve(&settings(&accounts));
    write_private(&file, b"another-password").unwrap();
    server.hang_up().unwrap();
    until_logged(&server, "the configuration is reloaded");
    write_private(&file, b"no").unwrap();
    server.hang_up().unwrap();
    until_logged(
        &server,
        "the configuration stays as it was: setting `registry.registry.example.password_file`",
    );
    write_private(&file, PASSWORD.as_bytes()).unwrap();
    edit(&server, "registry.example", "mirror.example");
    server.hang_up().unwrap();
    until_logged(&server, "changed=[\"registry\"]");
    stores_none(&server, &[PASSWORD, "another-password"]);
}

#[test]
fn a_check_warns_of_an_account_that_no_image_uses() {
    let (dir, file) = password();
    let head = format!(
        "listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n{}",
        simulated_node("one", "")
    );
    let check = |accounts: &str| {
        let config = dir.path().join("wharf.toml");
        checked(&wharf_binary(), &config, &format!("{head}{accounts}")).1
    };
    let accounts = account("host = \"registry.example\"", "wharf", &file);
    let flavor = "[[flavor]]\nname = \"tools\"\nssh = true\nimage = ";
    let warned = |more: &str| {
        check(&format!("{accounts}{more}")).contains("`registry.registry.example`: no `[[flavor]]`")
    };
    assert!(warned("") && warned(&format!("{flavor}\"tools:1\"\n")));
    assert!(!warned(&format!("{flavor}\"registry.example/tools:1\"\n")));
    let prefix = simulated_node("two", "image_prefix = \"registry.example/w/\"");
    assert!(!warned(&prefix));
}
