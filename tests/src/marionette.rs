//! Headless Firefox, driven over its own protocol, whose commands are those of WebDriver.

use crate::wait::eventually;
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wharf_testkit::process::find;

/// The preferences of the profile: any free port, and no pages of Mozilla's.
const PREFERENCES: &str = "user_pref(\"marionette.port\", 0);
user_pref(\"browser.shell.checkDefaultBrowser\", false);
user_pref(\"datareporting.policy.dataSubmissionEnabled\", false);
user_pref(\"app.normandy.enabled\", false);
user_pref(\"network.captive-portal-service.enabled\", false);
user_pref(\"network.connectivity-service.enabled\", false);
";
/// The deadline of a start.
const START_DEADLINE: Duration = Duration::from_secs(90);
/// The deadline of one command.
const DEADLINE: Duration = Duration::from_secs(120);

/// A connection to a browser.
pub struct Marionette {
    stream: Mutex<BufReader<TcpStream>>,
}

impl Marionette {
    /// Starts a browser with this profile, and a session in it.
    pub fn start(profile: &Path) -> Result<(Child, Self)> {
        std::fs::write(profile.join("user.js"), PREFERENCES)?;
        let mut browser = Command::new(find("firefox-esr").context("firefox-esr")?)
            .args(["--headless", "--marionette", "--no-remote"])
            .args(["--width", "1280", "--height", "900", "--profile"])
            .arg(profile)
            .env("HOME", profile)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let connected = Self::connect(profile);
        if connected.is_err() {
            browser.kill()?;
            browser.wait()?;
        }
        Ok((browser, connected?))
    }

    fn connect(profile: &Path) -> Result<Self> {
        let file = profile.join("MarionetteActivePort");
        let stream = eventually("Firefox listens", START_DEADLINE, || {
            let port = std::fs::read_to_string(&file).ok();
            let port = port.and_then(|port| port.trim().parse::<u16>().ok());
            Ok(port.and_then(|port| TcpStream::connect(("127.0.0.1", port)).ok()))
        })?;
        stream.set_read_timeout(Some(DEADLINE))?;
        let mut stream = BufReader::new(stream);
        message(&mut stream)?;
        let browser = Self {
            stream: Mutex::new(stream),
        };
        browser.command("WebDriver:NewSession", &json!({}))?;
        Ok(browser)
    }

    /// Sends a command under the path that it has in WebDriver.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value> {
        match path {
            "/url" => self.command("WebDriver:Navigate", body),
            "/element" => self.command("WebDriver:FindElement", body),
            "/actions" => self.command("WebDriver:PerformActions", body),
            "/execute/sync" => self.command("WebDriver:ExecuteScript", body),
            "/execute/async" => self.command("WebDriver:ExecuteAsyncScript", body),
            "/window" => self.command("WebDriver:SwitchToWindow", body),
            "/window/new" => self.command("WebDriver:NewWindow", body),
            "/timeouts" => self.command("WebDriver:SetTimeouts", body),
            _ => {
                let element = path.strip_prefix("/element/");
                let id = element.and_then(|rest| rest.strip_suffix("/click"));
                let id = id.with_context(|| format!("Firefox has no {path} here"))?;
                self.command("WebDriver:ElementClick", &json!({ "id": id }))
            }
        }
    }

    /// Reads a value under the path that it has in WebDriver.
    pub fn get(&self, path: &str) -> Result<Value> {
        let name = match path {
            "/url" => "WebDriver:GetCurrentURL",
            "/window" => "WebDriver:GetWindowHandle",
            "/window/handles" => "WebDriver:GetWindowHandles",
            "/screenshot" => "WebDriver:TakeScreenshot",
            _ => bail!("Firefox has no {path} here"),
        };
        self.command(name, &json!({ "full": false }))
    }

    fn command(&self, name: &str, parameters: &Value) -> Result<Value> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let text = json!([0, 1, name, parameters]).to_string();
        stream
            .get_mut()
            .write_all(format!("{}:{text}", text.len()).as_bytes())?;
        let answer = message(&mut stream)?;
        drop(stream);
        if !answer[2].is_null() {
            bail!("{name}: {}: {}", answer[2]["error"], answer[2]["message"]);
        }
        let result = &answer[3];
        Ok(result.get("value").unwrap_or(result).clone())
    }
}

/// Reads a message, before which stands its length.
fn message(stream: &mut BufReader<TcpStream>) -> Result<Value> {
    let mut length = Vec::new();
    stream.read_until(b':', &mut length)?;
    let length = length.strip_suffix(b":").context("Firefox has ended")?;
    let length: usize = std::str::from_utf8(length)?.parse()?;
    let mut text = vec![0; length];
    stream.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
