//! A signed-in browser in front of a server.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wharf_tests::browser::{self, Browser};
use wharf_tests::{Api, Ports, Server, settled, simulated_node, until};

pub const EMAIL: &str = "ann@example.com";
pub const PASSWORD: &str = "correct horse battery";

/// One browser at a time: two would compete for the processor, and measure each other.
static TURN: Mutex<()> = Mutex::new(());

/// It ends the browser, and then the server.
pub struct Desk {
    pub browser: Browser,
    pub server: Server,
    pub api: Api,
    /// The address of the console. Its host is not that of instances' pages.
    pub console: String,
    _turn: MutexGuard<'static, ()>,
}

impl Desk {
    /// Starts a server with room for a handful of instances, and signs in by an invitation. None
    /// without a browser, which needs root to install.
    pub fn start() -> Result<Option<Self>> {
        let ports = Ports::take().settings();
        Self::start_with(&format!("{ports}{}", simulated_node("one", "")))
    }

    /// Starts a server with these settings.
    pub fn start_with(settings: &str) -> Result<Option<Self>> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = browser::install() {
            assert!(std::env::var_os("CI").is_none(), "{error:#}");
            eprintln!("SKIPPED: {error:#}");
            return Ok(None);
        }
        let server = Server::start(settings)?.checked_at_end();
        let api = server.user(EMAIL)?;
        let browser = Browser::start("console")?;
        browser.resize(1400, 900)?;
        let link = server.cli(&["user", "invite", EMAIL])?;
        let (console, token) = link.trim().split_once("/invite#").context("no token")?;
        let desk = Self {
            console: console.to_owned(),
            server,
            browser,
            api,
            _turn: turn,
        };
        desk.accept_invitation(token)?;
        Ok(Some(desk))
    }

    fn accept_invitation(&self, token: &str) -> Result<()> {
        self.open(&format!("/invite#{token}"), "input[type=password]")?;
        self.picture("invite")?;
        self.browser
            .click_and_type("input[type=password]", PASSWORD)?;
        self.click("Accept the invitation")?;
        self.wait_for_title("Instances")
    }

    /// Opens a page of the console until it has an element.
    pub fn open(&self, path: &str, selector: &str) -> Result<()> {
        // A change of the fragment alone loads nothing.
        self.browser.open("about:blank", "body")?;
        let url = format!("{}{path}", self.console);
        self.browser.open(&url, selector)
    }

    /// Clicks on the button or link with this text, the one in a dialog if one is open.
    pub fn click(&self, text: &str) -> Result<()> {
        let script = format!(
            "const place = document.querySelector('dialog[open]') ?? document;
             const all = [...place.querySelectorAll('button, a, summary')];
             const found = all.find((e) => e.textContent.replaceAll('\\u{{a0}}', ' ').trim() === {text});
             if (!found || found.disabled) return false;
             found.click();
             return true;",
            text = json!(text)
        );
        self.browser
            .wait_for(&format!("{text:?} can be clicked"), &script)
            .map(drop)
    }

    /// Waits for an open dialog, whose buttons may have the text of buttons behind it.
    pub fn wait_for_dialog(&self) -> Result<()> {
        let script = "return document.querySelector('dialog[open]') !== null";
        self.browser.wait_for("a dialog is open", script).map(drop)
    }

    /// Replaces the text of a field.
    pub fn fill(&self, selector: &str, text: &str) -> Result<()> {
        self.browser.click_and_type(selector, "")?;
        self.browser
            .run("document.activeElement.select?.()")
            .map(drop)?;
        self.browser.type_keys(text)
    }

    /// Waits for the title of a page.
    pub fn wait_for_title(&self, words: &str) -> Result<()> {
        self.browser
            .wait_for(&format!("the page {words:?}"), &title(words))
            .map(drop)
    }

    /// Waits until the page of an instance shows a state.
    pub fn wait_for_state(&self, state: &str) -> Result<()> {
        let script =
            format!("return document.querySelector('main .state')?.textContent === '{state}'");
        self.browser
            .wait_for(&format!("the instance is {state}"), &script)
            .map(drop)
    }

    /// Signs in by the password.
    pub fn sign_in(&self) -> Result<()> {
        self.fill("#email", EMAIL)?;
        self.fill("#password", PASSWORD)?;
        self.click("Sign in")
    }

    /// Sends a request as a page does, and returns the status and the body.
    pub fn fetch(&self, method: &str, path: &str) -> Result<(u64, Value)> {
        let script = format!(
            "const headers = {{ 'Wharf-Session': localStorage.getItem('session-part') }};
             const response = await fetch('{path}', {{ method: '{method}', headers }});
             return [response.status, await response.json().catch(() => null)];"
        );
        let answer = self.browser.run_async(&script)?;
        let status = answer[0].as_u64().context("no status")?;
        Ok((status, answer[1].clone()))
    }

    /// Takes a snapshot of an instance, and waits until it is ready.
    pub fn snapshot(&self, instance: &str) -> Result<()> {
        let path = format!("/api/instance/{instance}/snapshot/");
        let taken = self.api.send("POST", &path, &json!({}))?.expect(201)?;
        let path = format!("/api/snapshot/{}/", taken["id"].as_str().context("no id")?);
        until("the snapshot is ready", || {
            Ok((self.api.get(&path)?.body["state"] == "ready").then_some(()))
        })
    }

    /// Makes the server listen on its present port at its next start too, so that pages find it.
    pub fn keep_port(&self) -> Result<()> {
        let listen = self.server.base_url().replace("http://", "");
        let config = std::fs::read_to_string(self.server.config_path())?;
        let config = config.replace("127.0.0.1:0", &listen);
        Ok(std::fs::write(self.server.config_path(), config)?)
    }

    /// Waits until no further response arrives and the page's fades are over.
    pub fn settle(&self) -> Result<()> {
        const LOOKS: u32 = 10;
        let responses = "return performance.getEntriesByType('resource').length";
        let count = || self.browser.run(responses).ok();
        settled(LOOKS, Duration::from_secs(30), count);
        let over = "return !document.getAnimations().some((fade) =>
            fade.playState === 'running' && fade.effect.getComputedTiming().endTime !== Infinity)";
        self.browser.wait_for("the fades are over", over).map(drop)
    }

    /// Saves a screenshot.
    pub fn picture(&self, name: &str) -> Result<()> {
        self.browser.screenshot(name).map(drop)
    }

    /// Waits until the row of an instance shows a state.
    pub fn wait_for_row(&self, name: &str, state: &str) -> Result<()> {
        let script = format!(
            "return document.querySelector('tr[data-name=\"{name}\"] .state')?.textContent === '{state}'"
        );
        self.browser
            .wait_for(&format!("{name} is {state} in the list"), &script)
            .map(drop)
    }
}

/// A script that looks at the title of the page.
pub fn title(words: &str) -> String {
    format!(
        "return document.querySelector('h1')?.textContent === {}",
        json!(words)
    )
}

/// The body of a create.
pub fn container(name: &str) -> Value {
    json!({
        "resource_type": "container", "name": name, "flavor": "base",
        "n_vcpus": 2, "mem_gib": 4, "disk_size_gib": 40,
    })
}
