//! Chromium without a screen, driven over WebDriver's HTTP interface.

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use ureq::Agent;
use wharf_testkit::packages::{self, Need};
use wharf_testkit::process::find;
use wharf_tests::{eventually, until};

const NEEDS: [Need; 2] = [
    Need {
        program: "chromium",
        package: "chromium",
        why: "the tests look at flavors' pages with it",
    },
    Need {
        program: "chromedriver",
        package: "chromium-driver",
        why: "the tests drive the browser with it",
    },
];
/// It speaks to the page under test and to nobody else.
const ARGUMENTS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
];
/// For one try at a page.
const PAGE_PATIENCE: Duration = Duration::from_secs(30);
/// WebDriver's name for an element's id.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// WebDriver's characters for keys.
pub const CONTROL: &str = "\u{E009}";
pub const ENTER: &str = "\u{E007}";

/// Installs the browser where it is missing.
pub fn install() -> Result<()> {
    packages::ensure(&NEEDS)
}

/// A browser with one page and a profile of its own. Dropping it ends it.
pub struct Browser {
    driver: Child,
    agent: Agent,
    session: String,
    profile: TempDir,
}

/// It takes a free port and wants the same for IPv6, where another process may have it: then it ends.
const STARTS: usize = 5;

/// A driver and its port; none if it has ended.
fn driver() -> Result<Option<(Child, u16)>> {
    let mut driver = Command::new(find("chromedriver").context("chromedriver")?)
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let lines = BufReader::new(driver.stdout.take().context("no stdout")?).lines();
    let port = lines.map_while(Result::ok).find_map(|line| {
        let (_, port) = line.split_once("successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    if port.is_none() {
        driver.wait()?;
    }
    Ok(port.map(|port| (driver, port)))
}

impl Browser {
    /// Starts one.
    pub fn start() -> Result<Self> {
        let profile = tempfile::Builder::new()
            .prefix("wharf-browser-")
            .tempdir()?;
        let (driver, port) = (0..STARTS)
            .find_map(|_| driver().transpose())
            .context("chromedriver ends without a port, each time")??;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(120)))
            .build();
        let mut browser = Self {
            driver,
            agent: config.into(),
            session: format!("http://127.0.0.1:{port}/session"),
            profile,
        };
        let mut arguments: Vec<String> = ARGUMENTS.map(str::to_owned).into();
        arguments.push(format!(
            "--user-data-dir={}",
            browser.profile.path().display()
        ));
        let options = json!({ "binary": find("chromium"), "args": arguments });
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
        } } });
        let made = browser.post("", &wanted)?;
        let id = made["sessionId"].as_str().context("no session")?;
        browser.session = format!("{}/{id}", browser.session);
        Ok(browser)
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let answer = self
            .agent
            .post(format!("{}{path}", self.session))
            .send_json(body)?;
        value(path, answer)
    }

    fn get(&self, path: &str) -> Result<Value> {
        value(
            path,
            self.agent.get(format!("{}{path}", self.session)).call()?,
        )
    }

    /// Goes to a page until this element is on it: the page of an instance that is started again
    /// may not be there at once, and on a busy machine a part of a page may not arrive.
    pub fn open(&self, url: &str, selector: &str) -> Result<()> {
        let find = json!({ "using": "css selector", "value": selector });
        until(&format!("{url} has {selector}"), || {
            if self.post("/url", &json!({ "url": url })).is_err() {
                return Ok(None);
            }
            let appears = eventually("element", PAGE_PATIENCE, || {
                Ok(self.post("/element", &find).ok())
            });
            Ok(appears.ok().map(drop))
        })
        .with_context(|| self.text())
    }

    /// Where it is now.
    pub fn address(&self) -> Result<String> {
        let url = self.get("/url")?;
        url.as_str().map(str::to_owned).context("no address")
    }

    /// Waits for an element, clicks on it, and types.
    pub fn click_and_type(&self, selector: &str, text: &str) -> Result<()> {
        let find = json!({ "using": "css selector", "value": selector });
        until(&format!("{selector} can be used"), || {
            let Ok(found) = self.post("/element", &find) else {
                return Ok(None);
            };
            let id = found[ELEMENT].as_str().unwrap_or_default();
            // It may be covered, or drawn anew, while the page builds itself up.
            let clicked = self.post(&format!("/element/{id}/click"), &json!({}));
            Ok(clicked.ok())
        })
        .with_context(|| self.text())?;
        if text.is_empty() {
            return Ok(());
        }
        self.type_keys(text)
    }

    /// Types where the cursor is. Control is held until the end of `text`.
    pub fn type_keys(&self, text: &str) -> Result<()> {
        let mut actions = Vec::new();
        for key in text.chars().map(String::from) {
            actions.push(json!({ "type": "keyDown", "value": key }));
            if key != CONTROL {
                actions.push(json!({ "type": "keyUp", "value": key }));
            }
        }
        if text.starts_with(CONTROL) {
            actions.push(json!({ "type": "keyUp", "value": CONTROL }));
        }
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.post("/actions", &json!({ "actions": [keyboard] }))
            .map(drop)
    }

    /// What a script gives.
    pub fn run(&self, script: &str) -> Result<Value> {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// All words on the page; none while it gives way to the next one.
    pub fn text(&self) -> String {
        let text = self.run("return document.body?.innerText ?? ''");
        text.ok()
            .and_then(|text| text.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Waits until these words are on the page.
    pub fn wait_for_text(&self, words: &str) -> Result<()> {
        until(&format!("{words:?} is on the page"), || {
            Ok(self.text().contains(words).then_some(()))
        })
        .with_context(|| self.text())
    }

    /// Waits until these words are on the page that it is on the way to; goes to `url` again where a
    /// part of that did not arrive and it stays empty, as on a busy machine it may.
    pub fn loads_with(&self, url: &str, words: &str) -> Result<()> {
        until(&format!("{words:?} is on {url}"), || {
            let appears = eventually("words", PAGE_PATIENCE, || {
                Ok(self.text().contains(words).then_some(()))
            });
            if appears.is_err() {
                println!("once more to {url}, which says {:?}", self.text());
                drop(self.post("/url", &json!({ "url": url })));
            }
            Ok(appears.ok())
        })
        .with_context(|| self.text())
    }

    /// Keeps a picture of the page as `target/flavors/NAME.png`, to be looked at.
    pub fn screenshot(&self, name: &str) -> Result<PathBuf> {
        let picture = self.get("/screenshot")?;
        let picture = BASE64_STANDARD.decode(picture.as_str().context("no picture")?)?;
        ensure!(picture.starts_with(b"\x89PNG"), "not a picture");
        let directory = wharf_testkit::workspace::target().join("flavors");
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(format!("{name}.png"));
        std::fs::write(&path, picture)?;
        Ok(path)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the browser; the driver alone would leave it behind.
        drop(self.agent.delete(&self.session).call());
        drop(self.driver.kill());
        drop(self.driver.wait());
    }
}

fn value(path: &str, mut answer: ureq::http::Response<ureq::Body>) -> Result<Value> {
    let body = answer
        .body_mut()
        .with_config()
        .limit(64 << 20)
        .read_json::<Value>()?;
    let value = &body["value"];
    if !answer.status().is_success() {
        bail!("WebDriver {path}: {}: {}", value["error"], value["message"]);
    }
    Ok(value.clone())
}
