//! Headless browsers: Chromium, driven over WebDriver's HTTP interface, and Firefox.

use crate::marionette::Marionette;
use crate::wait::{eventually, until};
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

const NEEDS: [Need; 2] = [
    Need {
        program: "chromium",
        package: "chromium",
        why: "the tests look at pages with it",
    },
    Need {
        program: "chromedriver",
        package: "chromium-driver",
        why: "the tests drive the browser with it",
    },
];
const FIREFOX: [Need; 1] = [Need {
    program: "firefox-esr",
    package: "firefox-esr",
    why: "the tests look at pages with it",
}];
/// The browser may connect to the page under test only.
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
/// The deadline of one attempt to load a page.
const PAGE_DEADLINE: Duration = Duration::from_secs(60);
/// WebDriver's name for an element's id.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// WebDriver's character for the Control key.
pub const CONTROL: &str = "\u{E009}";
/// WebDriver's character for the Enter key.
pub const ENTER: &str = "\u{E007}";
/// WebDriver's character for the Escape key.
pub const ESCAPE: &str = "\u{E00C}";

/// Installs the browser if it is missing.
pub fn install() -> Result<()> {
    packages::ensure(&NEEDS)
}

/// Installs Firefox if it is missing.
pub fn install_firefox() -> Result<()> {
    packages::ensure(&FIREFOX)
}

/// A browser with one page and its own profile. Dropping it ends it.
pub struct Browser {
    /// The driver, or the browser that needs none.
    child: Child,
    way: Way,
    profile: TempDir,
    pictures: &'static str,
}

/// The way to a browser.
enum Way {
    Http { agent: Agent, session: String },
    Firefox(Marionette),
}

/// Number of attempts to start. The driver picks a free IPv4 port and ends if that port is taken
/// for IPv6.
const STARTS: usize = 5;

/// Starts a driver and returns its port; none if it has ended.
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
    /// Starts a browser whose screenshots go to `target/PICTURES/`.
    pub fn start(pictures: &'static str) -> Result<Self> {
        let profile = profile()?;
        let (driver, port) = (0..STARTS)
            .find_map(|_| driver().transpose())
            .context("chromedriver ended without a port at each attempt")??;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(120)))
            .build();
        let agent: Agent = config.into();
        let sessions = format!("http://127.0.0.1:{port}/session");
        let mut browser = Self {
            child: driver,
            way: Way::Http {
                agent: agent.clone(),
                session: sessions.clone(),
            },
            profile,
            pictures,
        };
        let mut arguments: Vec<String> = ARGUMENTS.map(str::to_owned).into();
        arguments.push(format!(
            "--user-data-dir={}",
            browser.profile.path().display()
        ));
        let options = json!({ "binary": find("chromium"), "args": arguments });
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "SEVERE" },
        } } });
        let made = browser.post("", &wanted)?;
        let id = made["sessionId"].as_str().context("no session")?;
        browser.way = Way::Http {
            agent,
            session: format!("{sessions}/{id}"),
        };
        Ok(browser)
    }

    /// Starts a Firefox whose screenshots go to `target/PICTURES/`.
    pub fn start_firefox(pictures: &'static str) -> Result<Self> {
        let profile = profile()?;
        let (child, marionette) = Marionette::start(profile.path())?;
        Ok(Self {
            child,
            way: Way::Firefox(marionette),
            profile,
            pictures,
        })
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        match &self.way {
            Way::Http { agent, session } => value(
                path,
                agent.post(format!("{session}{path}")).send_json(body)?,
            ),
            Way::Firefox(firefox) => firefox.post(path, body),
        }
    }

    fn get(&self, path: &str) -> Result<Value> {
        match &self.way {
            Way::Http { agent, session } => {
                value(path, agent.get(format!("{session}{path}")).call()?)
            }
            Way::Firefox(firefox) => firefox.get(path),
        }
    }

    /// Gives a script of [`Self::run_async`] more time than its usual half minute.
    pub fn be_patient(&self, deadline: Duration) -> Result<()> {
        let deadline = u64::try_from(deadline.as_millis())?;
        self.post("/timeouts", &json!({ "script": deadline }))
            .map(drop)
    }

    /// Opens a page until it has this element. A restarted instance may not serve its page at once,
    /// and a busy machine may serve it in part.
    pub fn open(&self, url: &str, selector: &str) -> Result<()> {
        let find = json!({ "using": "css selector", "value": selector });
        until(&format!("{url} has {selector}"), || {
            if self.post("/url", &json!({ "url": url })).is_err() {
                return Ok(None);
            }
            let appears = eventually("element", PAGE_DEADLINE, || {
                Ok(self.post("/element", &find).ok())
            });
            Ok(appears.ok().map(drop))
        })
        .with_context(|| self.text())
    }

    /// Returns the current address.
    pub fn address(&self) -> Result<String> {
        let url = self.get("/url")?;
        url.as_str().map(str::to_owned).context("no address")
    }

    /// Opens a tab and continues in it. Returns the tab before.
    pub fn new_tab(&self) -> Result<String> {
        let before = self.get("/window")?;
        let made = self.post("/window/new", &json!({ "type": "tab" }))?;
        self.switch_to(made["handle"].as_str().context("no tab")?)?;
        before.as_str().map(str::to_owned).context("no tab")
    }

    /// Returns all tabs.
    pub fn tabs(&self) -> Result<Vec<String>> {
        let tabs = self.get("/window/handles")?;
        let tabs = tabs.as_array().context("no tabs")?.iter();
        Ok(tabs.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// Continues in another tab.
    pub fn switch_to(&self, tab: &str) -> Result<()> {
        self.post("/window", &json!({ "handle": tab })).map(drop)
    }

    /// Waits for an element, clicks on it, and types.
    pub fn click_and_type(&self, selector: &str, text: &str) -> Result<()> {
        let find = json!({ "using": "css selector", "value": selector });
        until(&format!("{selector} can be used"), || {
            let Ok(found) = self.post("/element", &find) else {
                return Ok(None);
            };
            let id = found[ELEMENT].as_str().unwrap_or_default();
            // The element may be covered or redrawn while the page loads.
            let clicked = self.post(&format!("/element/{id}/click"), &json!({}));
            Ok(clicked.ok())
        })
        .with_context(|| self.text())?;
        if text.is_empty() {
            return Ok(());
        }
        self.type_keys(text)
    }

    /// Types at the cursor. Control is held until the end of `text`.
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

    /// Runs a script and returns its result.
    pub fn run(&self, script: &str) -> Result<Value> {
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Runs a script that returns a promise, and returns the promise's value.
    pub fn run_async(&self, script: &str) -> Result<Value> {
        let script =
            format!("const done = arguments[0]; (async () => {{ {script} }})().then(done)");
        self.post("/execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Waits until a script returns a value that JavaScript takes as true.
    pub fn wait_for(&self, what: &str, script: &str) -> Result<Value> {
        until(what, || {
            let value = self.run(script).unwrap_or_default();
            let is_true = !matches!(value, Value::Null | Value::Bool(false));
            Ok(is_true.then_some(value))
        })
        .with_context(|| self.text())
    }

    /// Sends a command of Chromium's own protocol.
    pub fn command(&self, name: &str, parameters: &Value) -> Result<Value> {
        let command = json!({ "cmd": name, "params": parameters });
        self.post("/goog/cdp/execute", &command)
    }

    /// Sets the size of the page, as of a screen of that size.
    pub fn resize(&self, width: u32, height: u32) -> Result<()> {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.command("Emulation.setDeviceMetricsOverride", &size)
            .map(drop)
    }

    /// Makes the page believe that its user prefers `light` or `dark` colors.
    pub fn prefer(&self, scheme: &str) -> Result<()> {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.command(
            "Emulation.setEmulatedMedia",
            &json!({ "features": features }),
        )
        .map(drop)
    }

    /// Returns the text of the page; empty while another page loads.
    pub fn text(&self) -> String {
        let text = self.run("return document.body?.innerText ?? ''");
        text.ok()
            .and_then(|text| text.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Waits until the page has this text.
    pub fn wait_for_text(&self, words: &str) -> Result<()> {
        until(&format!("{words:?} is on the page"), || {
            Ok(self.text().contains(words).then_some(()))
        })
        .with_context(|| self.text())
    }

    /// Waits until the next page has this text. Opens `url` again if the page stays incomplete:
    /// on the engine's machine, a new instance changes the interfaces, and Chromium drops its requests.
    pub fn loads_with(&self, url: &str, words: &str) -> Result<()> {
        until(&format!("{words:?} is on {url}"), || {
            let appears = eventually("words", PAGE_DEADLINE, || {
                Ok(self.text().contains(words).then_some(()))
            });
            if appears.is_err() {
                println!("loading {url} again, which shows {:?}", self.text());
                // Chromium alone has this log. It names the requests that failed, and why.
                if let Ok(log) = self.post("/se/log", &json!({ "type": "browser" })) {
                    println!("{log}");
                }
                drop(self.post("/url", &json!({ "url": url })));
            }
            Ok(appears.ok())
        })
        .with_context(|| self.text())
    }

    /// Saves a screenshot as `target/PICTURES/NAME.png`, for inspection by hand.
    pub fn screenshot(&self, name: &str) -> Result<PathBuf> {
        let picture = self.get("/screenshot")?;
        let picture = BASE64_STANDARD.decode(picture.as_str().context("no picture")?)?;
        ensure!(picture.starts_with(b"\x89PNG"), "not a picture");
        let directory = wharf_testkit::workspace::target().join(self.pictures);
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(format!("{name}.png"));
        std::fs::write(&path, picture)?;
        Ok(path)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends the browser, which would outlive the driver.
        if let Way::Http { agent, session } = &self.way {
            drop(agent.delete(session).call());
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn profile() -> Result<TempDir> {
    let profile = tempfile::Builder::new()
        .prefix("wharf-browser-")
        .tempdir()?;
    Ok(profile)
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
