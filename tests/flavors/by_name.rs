//! Pages by name: the session of the console opens notebook servers, and they work behind the gateway.

use crate::context::FlavorContext;
use crate::page::{credential_is_kept, is_unknown_inside, run_cell};
use crate::tool::Tool;
use crate::visitor::{self, Visitor};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::time::Duration;
use wharf_tests::browser::Browser;

const EMAIL: &str = "ann@example.com";
const CODE: &str = "print(6 * 7 * 1000 + 1)";
/// A script that sends 200 MB to the server of notebooks as its page does, in parts, fetches them again, and
/// returns the size and whether the bytes are the same.
const LARGE: &str = "
    const [size, part] = [200e6, 20e6];
    const bytes = new Uint8Array(size);
    const block = crypto.getRandomValues(new Uint8Array(65536));
    for (let at = 0; at < size; at += block.length) bytes.set(block.subarray(0, size - at), at);
    new DataView(bytes.buffer).setUint32(size / 2, 0xfeedface);
    const base64 = (piece) => new Promise((end) => {
      const reader = new FileReader();
      reader.onload = () => end(reader.result.split(',')[1]);
      reader.readAsDataURL(new Blob([piece]));
    });
    const xsrf = document.cookie.match(/_xsrf=([^;]+)/)?.[1] ?? '';
    const headers = { 'Content-Type': 'application/json', 'X-XSRFToken': xsrf };
    const url = '/api/contents/large.bin';
    let now = performance.now();
    for (let chunk = 1, at = 0; at < size; chunk++, at += part) {
      const content = await base64(bytes.subarray(at, at + part));
      const last = at + part >= size;
      const model = { type: 'file', format: 'base64', name: 'large.bin', path: 'large.bin', content };
      const body = JSON.stringify({ ...model, chunk: last ? -1 : chunk });
      const sent = await fetch(url, { method: 'PUT', headers, body });
      if (!sent.ok) return ['upload', sent.status, await sent.text()];
    }
    const up = performance.now() - now;
    now = performance.now();
    const got = await fetch('/files/large.bin');
    const back = new Uint8Array(await got.arrayBuffer());
    const down = performance.now() - now;
    const hash = async (bytes) => new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)).join();
    return [back.length, await hash(back) === await hash(bytes), up, down];";

/// Opens marimo and JupyterLab with one sign-in, and runs a cell in each.
pub fn run_cells(context: &FlavorContext) -> Result<()> {
    work(context, &Browser::start("flavors")?, "chromium")
}

/// Does so in Firefox.
pub fn run_cells_in_firefox(context: &FlavorContext) -> Result<()> {
    wharf_tests::browser::install_firefox()?;
    work(context, &Browser::start_firefox("flavors")?, "firefox")
}

fn work(context: &FlavorContext, browser: &Browser, browser_name: &str) -> Result<()> {
    let server = visitor::server(context)?;
    let ann = Visitor::invited(&server, browser, EMAIL)?;
    for flavor in ["marimo", "jupyterlab"] {
        let instance = ann.creates(flavor, flavor)?;
        ann.opens(&instance, flavor)?;
        let url = format!("{}/", visitor::origin(&instance)?);
        let cell = Tool::of(flavor).new_notebook(browser, &url)?;
        run_cell(browser, cell, CODE, "42001")?;
        browser.screenshot(&format!("{flavor}-by-name-{browser_name}"))?;
        // Programs of a visitor whom the owner lets in find as much as these.
        credential_is_kept(context, Tool::of(flavor), &instance)?;
        let password = instance["original_service_password"].as_str();
        is_unknown_inside(context, &instance, password.context("no password")?)?;
        if flavor == "jupyterlab" && wharf_tests::lanes::is_whole_run() {
            sends_and_fetches(browser)?;
        }
    }
    server.finish()
}

fn sends_and_fetches(browser: &Browser) -> Result<()> {
    browser.be_patient(Duration::from_secs(110))?;
    let done = browser.run_async(LARGE)?;
    println!("200 MB: [size, same, ms up, ms down] = {done}");
    ensure!(
        done[0] == 200_000_000 && done[1] == Value::Bool(true),
        "{done}"
    );
    Ok(())
}
