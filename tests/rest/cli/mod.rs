//! The commands for users, against a real server with the simulated engine.

mod account;
mod admin_socket;
mod agent;
mod completions;
mod config_ssh;
mod console;
mod exit_codes;
mod follow;
mod images;
mod json;
mod login;
mod names;
mod newer;
mod operator;
mod public_keys;
mod secrets;
mod share;
mod snapshots;
mod terminal;
mod tunnel;
mod unreachable;
mod verbs;
mod volumes;

use wharf_tests::{Api, Server, Shell};

/// A server whose simulated node has these settings, and a user with the commands.
fn signed_in(settings: &str) -> (Server, Api, Shell) {
    let (server, api) = crate::start_with(settings);
    let shell = Shell::signed_in(&server, "ann@example.com").unwrap();
    (server, api, shell)
}

/// Runs a command that fails with this code and these words.
#[track_caller]
fn refused(shell: &Shell, words: &[&str], code: i32, text: &str) {
    let ended = shell.run(words).unwrap();
    assert_eq!(ended.code, Some(code), "{words:?}: {ended:?}");
    crate::has(&ended.stderr, text);
}
