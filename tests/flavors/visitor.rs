//! A user in front of the console and of pages by name.

use crate::context::FlavorContext;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::time::Instant;
use wharf_tests::browser::{Browser, ENTER};
use wharf_tests::{Api, Server, small, until};

use crate::tool::Tool;

/// The settings of a server with pages by name.
const PAGES: &str = "[pages]\ndomain = \"apps.localhost\"\nlisten = \"127.0.0.1:0\"\n";
const PASSWORD: &str = "correct horse battery";

/// Starts a server with pages by name.
pub fn server(context: &FlavorContext) -> Result<Server> {
    context.server_with(PAGES)
}

/// A user who is signed in to the console in the present tab.
pub struct Visitor<'a> {
    pub api: Api,
    browser: &'a Browser,
    console: String,
}

impl<'a> Visitor<'a> {
    /// Accepts an invitation.
    pub fn invited(server: &Server, browser: &'a Browser, email: &str) -> Result<Self> {
        let api = server.user(email)?;
        let link = server.cli(&["user", "invite", email])?;
        let (console, _) = link.trim().split_once("/invite#").context("no token")?;
        browser.open(link.trim(), "input[type=password]")?;
        browser.click_and_type("input[type=password]", &format!("{PASSWORD}{ENTER}"))?;
        browser.wait_for_text("No instances yet")?;
        Ok(Self {
            api,
            browser,
            console: console.to_owned(),
        })
    }

    /// Creates an instance whose name and flavor these are, and waits until it runs.
    pub fn creates(&self, name: &str, flavor: &str) -> Result<Value> {
        let mut body = small("container");
        body["flavor"] = json!(flavor);
        body["name"] = json!(name);
        body["mem_gib"] = json!(2);
        self.api.create(&body)?.expect(201)?;
        let instance = self.api.wait_for(name, "running")?;
        let origin = origin(&instance)?;
        ensure!(
            origin.starts_with(&format!("http://{name}.apps.localhost:")),
            "{origin}"
        );
        Ok(instance)
    }

    /// Opens the page of an instance from the console with one click, and continues in its tab.
    pub fn opens(&self, instance: &Value, flavor: &str) -> Result<()> {
        self.opens_with(instance, Tool::of(flavor).inside)
    }

    /// Does what [`Self::opens`] does, for a page with these words.
    pub fn opens_with(&self, instance: &Value, words: &str) -> Result<()> {
        let name = instance["name"].as_str().context("no name")?;
        let url = instance["webapp_url"].as_str().context("no page")?;
        let browser = self.browser;
        browser.open(&format!("{}/instances/{name}", self.console), "a.primary")?;
        let before = browser.tabs()?;
        let begin = Instant::now();
        browser.click_and_type(&format!("a.primary[href='{url}']"), "")?;
        let tab = until("a tab for the page", || {
            let mut tabs = browser.tabs()?.into_iter();
            Ok(tabs.find(|tab| !before.contains(tab)))
        })?;
        browser.switch_to(&tab)?;
        browser.loads_with(url, words)?;
        println!("{name}: opened by one click after {:?}", begin.elapsed());
        Ok(())
    }
}

/// Returns the origin of the page of an instance.
pub fn origin(instance: &Value) -> Result<&str> {
    let url = instance["webapp_url"].as_str().context("no page")?;
    Ok(url.trim_end_matches('/'))
}
