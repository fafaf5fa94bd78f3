//! The terminal's page, with an SSH server of the tests in place of the simulated instance.

use crate::axe;
use crate::desk::{Desk, container};
use crate::ssh_server::SshServer;
use wharf_tests::browser::{Browser, ENTER};
use wharf_tests::{Ports, lasting_node, succeed};

/// Whether the last size that the shell has written has 41 to 99 columns.
const NARROW: &str = "const e = document.querySelector('.xterm-accessibility');
    const sizes = [...e.textContent.replaceAll('\u{a0}', ' ').matchAll(/\\b(\\d+) (\\d+)\\b/g)];
    const columns = Number(sizes.at(-1)?.[1]);
    return columns > 40 && columns < 100";

fn wait_for_output(browser: &Browser, words: &str) {
    let script = format!(
        "return document.querySelector('.xterm-accessibility')?.textContent\
         .replaceAll('\u{a0}', ' ').includes('{words}')"
    );
    browser
        .wait_for(&format!("{words:?} is in the terminal"), &script)
        .unwrap();
}

/// Whether the page links to the home directory in VS Code.
const EDITOR: &str = "const link = document.querySelector('a[href^=\"vscode:\"]');
    return link?.href === 'vscode://vscode-remote/ssh-remote+shell.wharf/home/user';";

#[test]
fn a_terminal_opens_in_the_page_and_comes_back_after_a_reload() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let made = desk.api.create(&container("shell")).unwrap();
    made.expect(201).unwrap();
    let instance = desk.api.wait_for("shell", "running").unwrap();
    let ssh = SshServer::of(&instance).unwrap();
    desk.open("/instances/shell", "#tab-overview").unwrap();
    browser.wait_for("the link to an editor", EDITOR).unwrap();
    desk.click("Open terminal").unwrap();
    desk.wait_for_title("Terminal of shell").unwrap();
    wait_for_output(browser, "ready>");
    browser.click_and_type(".xterm-screen", "hello").unwrap();
    browser.type_keys(ENTER).unwrap();
    wait_for_output(browser, "you said hello");
    axe::check(browser, "terminal").unwrap();
    desk.picture("terminal-open").unwrap();
    // After a reload, the shell and its output are there.
    browser.run("location.reload()").unwrap();
    wait_for_output(browser, "you said hello");
    let open = || ssh.open.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(open(), 1, "the shell is the earlier one");
    // The size of the page is that of the terminal.
    browser.resize(700, 600).unwrap();
    browser.click_and_type(".xterm-screen", "size").unwrap();
    browser.type_keys(ENTER).unwrap();
    browser.wait_for("a narrower terminal", NARROW).unwrap();
    // A sign-out elsewhere ends the shell, and the page asks for a new sign-in.
    let (status, _) = desk.fetch("POST", "/auth/sign-out/").unwrap();
    assert_eq!(status, 204);
    desk.wait_for_title("Sign in to Wharf").unwrap();
    wharf_tests::until("the shell has ended", || Ok((open() == 0).then_some(()))).unwrap();
}

#[test]
fn a_terminal_opens_again_after_a_restart_of_the_server() {
    let (node, _dir) = lasting_node("one", "").unwrap();
    let settings = format!("{}{node}", Ports::take().settings());
    let Some(mut desk) = Desk::start_with(&settings).unwrap() else {
        return;
    };
    let made = desk.api.create(&container("shell")).unwrap();
    made.expect(201).unwrap();
    let instance = desk.api.wait_for("shell", "running").unwrap();
    let _ssh = SshServer::of(&instance).unwrap();
    desk.open("/instances/shell/terminal", "h1").unwrap();
    wait_for_output(&desk.browser, "ready>");
    desk.browser
        .click_and_type(".xterm-screen", "before")
        .unwrap();
    desk.browser.type_keys(ENTER).unwrap();
    wait_for_output(&desk.browser, "you said before");
    desk.keep_port().unwrap();
    assert!(desk.server.terminate().unwrap().success());
    desk.browser.wait_for_text("comes back by itself").unwrap();
    desk.server.run().unwrap();
    wait_for_output(&desk.browser, "This is a new one.");
    // The earlier output stays, and the new shell works.
    wait_for_output(&desk.browser, "you said before");
    desk.browser
        .click_and_type(".xterm-screen", "after")
        .unwrap();
    desk.browser.type_keys(ENTER).unwrap();
    wait_for_output(&desk.browser, "you said after");
}

/// Sends a signal to the server.
fn signal(desk: &Desk, name: &str) {
    let id = desk.server.process_id().unwrap().to_string();
    succeed(std::process::Command::new("kill").args([name, id.as_str()])).unwrap();
}

#[test]
fn a_size_that_changes_while_the_terminal_connects_is_not_lost() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let made = desk.api.create(&container("shell")).unwrap();
    made.expect(201).unwrap();
    let instance = desk.api.wait_for("shell", "running").unwrap();
    let _ssh = SshServer::of(&instance).unwrap();
    desk.open("/instances/shell/terminal", "h1").unwrap();
    wait_for_output(browser, "ready>");
    browser.click_and_type(".xterm-screen", "exit 0").unwrap();
    browser.type_keys(ENTER).unwrap();
    browser.wait_for_text("The shell has ended.").unwrap();
    signal(&desk, "-STOP");
    desk.click("Open again").unwrap();
    let connecting = "return document.querySelector('.screen-state').textContent === 'Connecting' \
                      && document.querySelector('.xterm-screen') !== null";
    browser.wait_for("it connects", connecting).unwrap();
    browser.resize(700, 600).unwrap();
    let narrow = "return document.querySelector('.xterm-screen').clientWidth < 700";
    browser.wait_for("the page is narrow", narrow).unwrap();
    signal(&desk, "-CONT");
    wait_for_output(browser, "ready>");
    browser.click_and_type(".xterm-screen", "size").unwrap();
    browser.type_keys(ENTER).unwrap();
    browser.wait_for("the narrow size", NARROW).unwrap();
}
