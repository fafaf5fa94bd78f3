//! The ways to sign in, with an authenticator that Chromium simulates.

use crate::axe;
use crate::desk::{Desk, EMAIL};
use serde_json::{Value, json};
use wharf_tests::{Ports, simulated_node, write_private};

/// Gives the browser an authenticator in the machine that verifies its user at once.
fn give_authenticator(desk: &Desk) {
    let command = |name: &str, parameters: Value| {
        desk.browser.command(name, &parameters).unwrap();
    };
    command("WebAuthn.enable", json!({}));
    let options = json!({
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": true,
        "hasUserVerification": true, "isUserVerified": true, "automaticPresenceSimulation": true,
    });
    command(
        "WebAuthn.addVirtualAuthenticator",
        json!({ "options": options }),
    );
}

fn sign_out(desk: &Desk) {
    desk.open("/settings/account", "h1").unwrap();
    desk.click("Sign out").unwrap();
    desk.wait_for_title("Sign in to Wharf").unwrap();
}

#[test]
fn a_user_signs_in_with_a_passkey_and_sees_the_ways_to_sign_in() {
    let secrets = tempfile::tempdir().unwrap();
    let secret = secrets.path().join("secret");
    write_private(&secret, b"a secret").unwrap();
    let settings = format!(
        "{}{}\n[oidc]\nissuer = \"http://127.0.0.1:9\"\nclient_id = \"wharf\"\n\
         client_secret_file = \"{}\"\nname = \"Example\"\nallow_domains = [\"example.com\"]\n",
        Ports::take().settings(),
        simulated_node("one", ""),
        secret.display()
    );
    let Some(desk) = Desk::start_with(&settings).unwrap() else {
        return;
    };
    give_authenticator(&desk);
    adds_and_renames(&desk);
    signs_in(&desk);
    removes(&desk);
    takes_the_objects_of_an_extension(&desk);
    accepts_an_invitation(&desk);
}

fn adds_and_renames(desk: &Desk) {
    let browser = &desk.browser;
    desk.open("/settings/account", "h1").unwrap();
    browser.wait_for_text("There are no passkeys yet").unwrap();
    desk.fill("input[placeholder=Laptop]", "First").unwrap();
    desk.click("Add a passkey").unwrap();
    let listed = |name: &str| {
        let script =
            format!("return document.querySelector('[aria-label=\"Rename {name}\"]') !== null");
        browser
            .wait_for(&format!("{name} is listed"), &script)
            .unwrap();
    };
    listed("First");
    // The device has a passkey of the account already.
    desk.click("Add a passkey").unwrap();
    browser
        .wait_for_text("This device has a passkey of the account already")
        .unwrap();
    browser
        .click_and_type("[aria-label=\"Rename First\"]", "")
        .unwrap();
    desk.wait_for_dialog().unwrap();
    desk.fill("dialog input", "Second").unwrap();
    desk.picture("passkey-rename").unwrap();
    desk.click("Rename").unwrap();
    listed("Second");
    desk.picture("passkeys").unwrap();
    axe::check(browser, "passkeys").unwrap();
}

fn signs_in(desk: &Desk) {
    let browser = &desk.browser;
    sign_out(desk);
    browser.wait_for_text("Sign in with Example").unwrap();
    desk.picture("ways-to-sign-in").unwrap();
    axe::check(browser, "ways-to-sign-in").unwrap();
    desk.click("Sign in with Example").unwrap();
    browser
        .wait_for_text("The provider is out of reach")
        .unwrap();
    desk.picture("provider-out-of-reach").unwrap();
    desk.click("Sign in with a passkey").unwrap();
    desk.wait_for_title("Instances").unwrap();
    let (_, session) = desk.fetch("GET", "/api/session/").unwrap();
    assert_eq!(session["email"], EMAIL);
}

fn removes(desk: &Desk) {
    let browser = &desk.browser;
    desk.open("/settings/account", "h1").unwrap();
    browser
        .click_and_type("[aria-label=\"Remove Second\"]", "")
        .unwrap();
    desk.wait_for_dialog().unwrap();
    desk.click("Remove").unwrap();
    browser.wait_for_text("There are no passkeys yet").unwrap();
    sign_out(desk);
    // The device still offers it.
    desk.click("Sign in with a passkey").unwrap();
    browser
        .wait_for(
            "the refusal",
            "return document.querySelector('[role=alert]')?.textContent.includes('removed')",
        )
        .unwrap();
}

/// Password managers put objects of their own in place of the browser's, without native methods.
const EXTENSION: &str = "
    const own = (object, names) => Object.fromEntries(names.map((name) => [name, object[name]]));
    const bytes = ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle'];
    for (const method of ['create', 'get']) {
        const native = navigator.credentials[method].bind(navigator.credentials);
        navigator.credentials[method] = async (options) => {
            const made = await native(options);
            const response = own(made.response, bytes.filter((name) => name in made.response));
            return { ...own(made, ['id', 'rawId', 'type']), response };
        };
    }";

fn takes_the_objects_of_an_extension(desk: &Desk) {
    let browser = &desk.browser;
    desk.sign_in().unwrap();
    desk.wait_for_title("Instances").unwrap();
    desk.open("/settings/account", "h1").unwrap();
    browser.run(EXTENSION).unwrap();
    desk.click("Add a passkey").unwrap();
    browser
        .wait_for(
            "the passkey",
            "return document.querySelector('[aria-label=\"Rename Passkey\"]') !== null",
        )
        .unwrap();
    sign_out(desk);
    browser.run(EXTENSION).unwrap();
    desk.click("Sign in with a passkey").unwrap();
    desk.wait_for_title("Instances").unwrap();
    // A fault of an extension is words on the page, in a form and elsewhere.
    desk.open("/settings/account", "h1").unwrap();
    browser
        .run("navigator.credentials.create = async () => ({ response: null })")
        .unwrap();
    desk.click("Add a passkey").unwrap();
    browser
        .wait_for_text("The page could not go on (TypeError")
        .unwrap();
    browser
        .run(
            "const reason = new Error('a fault of a test');
             const promise = Promise.resolve();
             dispatchEvent(new PromiseRejectionEvent('unhandledrejection', { promise, reason }))",
        )
        .unwrap();
    browser.wait_for_text("(Error: a fault of a test)").unwrap();
    desk.click("Close").unwrap();
    sign_out(desk);
}

/// An account without a password keeps its last passkey.
fn accepts_an_invitation(desk: &Desk) {
    let browser = &desk.browser;
    let link = desk.server.cli(&["user", "invite", "bob@example.com"]);
    let link = link.unwrap();
    let (_, token) = link.trim().split_once("/invite#").unwrap();
    desk.open(&format!("/invite#{token}"), "input[type=password]")
        .unwrap();
    browser.wait_for_text("Accept with a passkey").unwrap();
    desk.picture("invite-ways").unwrap();
    axe::check(browser, "invite-ways").unwrap();
    desk.click("Accept with a passkey").unwrap();
    desk.wait_for_title("Instances").unwrap();
    desk.open("/settings/account", "h1").unwrap();
    browser.wait_for_text("Set a password").unwrap();
    browser
        .click_and_type("[aria-label=\"Remove Passkey\"]", "")
        .unwrap();
    desk.wait_for_dialog().unwrap();
    desk.click("Remove").unwrap();
    browser.wait_for_text("the last way to sign in").unwrap();
    desk.picture("last-way").unwrap();
    desk.click("Keep").unwrap();
}
