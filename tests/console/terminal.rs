//! The terminal's page, with an SSH server of the tests in place of the simulated instance.

#[allow(dead_code)]
#[path = "../rest/terminal/ssh_server.rs"]
mod ssh_server;

use crate::axe;
use crate::desk::{Desk, container};
use ssh_server::SshServer;
use wharf_tests::browser::{Browser, ENTER};

fn wait_for_output(browser: &Browser, words: &str) {
    let script = format!(
        "return document.querySelector('.xterm-accessibility')?.textContent\
         .replaceAll('\u{a0}', ' ').includes('{words}')"
    );
    browser
        .wait_for(&format!("{words:?} is in the terminal"), &script)
        .unwrap();
}

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
    let columns = "const e = document.querySelector('.xterm-accessibility');
         const sizes = [...e.textContent.replaceAll('\u{a0}', ' ').matchAll(/\\b(\\d+) (\\d+)\\b/g)];
         const columns = Number(sizes.at(-1)?.[1]);
         return columns > 40 && columns < 100";
    browser.type_keys(ENTER).unwrap();
    browser.wait_for("a narrower terminal", columns).unwrap();
    // A sign-out elsewhere ends the shell, and the page asks for a new sign-in.
    let status = browser
        .run_async("return (await fetch('/auth/sign-out/', { method: 'POST' })).status")
        .unwrap();
    assert_eq!(status, 204);
    desk.wait_for_title("Sign in to Wharf").unwrap();
    wharf_tests::until("the shell has ended", || Ok((open() == 0).then_some(()))).unwrap();
    desk.finish().unwrap();
}
