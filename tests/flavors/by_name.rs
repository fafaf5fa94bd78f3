//! Pages by name: the session of the console opens notebook servers, and they work behind the gateway.

use crate::context::FlavorContext;
use crate::page::run_cell;
use crate::tool::Tool;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::time::Instant;
use wharf_tests::browser::{Browser, ENTER};
use wharf_tests::small;

const PAGES: &str = "[pages]\ndomain = \"apps.localhost\"\nlisten = \"127.0.0.1:0\"\n";
const EMAIL: &str = "ann@example.com";
const PASSWORD: &str = "correct horse battery";
const CODE: &str = "print(6 * 7 * 1000 + 1)";

/// Opens marimo and JupyterLab with one sign-in, and runs a cell in each.
pub fn run_cells(context: &FlavorContext) -> Result<()> {
    let server = context.server_with(PAGES)?;
    let api = server.user(EMAIL)?;
    let browser = Browser::start("flavors")?;
    let link = server.cli(&["user", "invite", EMAIL])?;
    browser.open(link.trim(), "input[type=password]")?;
    browser.click_and_type("input[type=password]", &format!("{PASSWORD}{ENTER}"))?;
    browser.wait_for_text("No instances yet")?;
    for flavor in ["marimo", "jupyterlab"] {
        let mut body = small("container");
        body["flavor"] = json!(flavor);
        body["name"] = json!(flavor);
        body["mem_gib"] = json!(2);
        api.create(&body)?.expect(201)?;
        let instance = api.wait_for(flavor, "running")?;
        let url = instance["webapp_url"].as_str().context("no page")?;
        ensure!(
            url.starts_with(&format!("http://{flavor}.apps.localhost:")),
            "{url}"
        );
        let tool = Tool::of(flavor);
        let begin = Instant::now();
        browser.open(url, "body")?;
        browser.loads_with(url, tool.inside)?;
        println!("{flavor}: opened by its name after {:?}", begin.elapsed());
        let cell = tool.new_notebook(&browser, url)?;
        run_cell(&browser, cell, CODE, "42001")?;
        browser.screenshot(&format!("{flavor}-by-name"))?;
    }
    drop(browser);
    server.finish()
}
