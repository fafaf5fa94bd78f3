//! marimo in a browser.

use crate::browser::{Browser, ENTER};
use crate::context::Context;
use crate::page::{PASSWORD, Page, run_cell, status};
use anyhow::{Result, ensure};
use serde_json::json;

pub fn runs_a_cell(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let page = Page::create(&api, "marimo", &json!({}))?;
    page.has_no_ssh(context)?;
    page.keeps_its_password(context)?;
    in_the_browser(&page, "marimo")?;
    // The password and what is in the home directory outlive a stop.
    context.inside_as_user(&page.instance, "echo kept > ~/file")?;
    let name = page.instance["name"].as_str().unwrap_or_default();
    api.act(name, "stop")?.expect(200)?;
    api.act(name, "restart")?.expect(200)?;
    api.wait_for(name, "running")?;
    log_in(&Browser::start()?, &page)?;
    ensure!(context.inside_as_user(&page.instance, "cat ~/file")? == "kept");
    api.delete(name)?.expect(204)?;
    server.finish()
}

/// A wrong password is refused, the right one let in, and a new notebook's cell runs.
pub fn in_the_browser(page: &Page, name: &str) -> Result<()> {
    // The interface behind the page asks for the password too.
    let closed = status(&format!("{}api/version", page.url), "")?;
    ensure!(
        [401, 403, 303].contains(&closed),
        "without a password: {closed}"
    );
    let browser = Browser::start()?;
    browser.open(&page.url, PASSWORD)?;
    ensure!(browser.address()?.contains("/auth/login"));
    browser.screenshot(&format!("{name}-login"))?;
    browser.click_and_type(PASSWORD, &format!("wrong{ENTER}"))?;
    browser.wait_for_text("Invalid password")?;
    log_in(&browser, page)?;
    browser.screenshot(&format!("{name}-home"))?;

    browser.open(&format!("{}?file=__new__", page.url), ".cm-content")?;
    run_cell(&browser, ".cm-content", "print(6 * 7 * 1000 + 1)", "42001")?;
    let picture = browser.screenshot(&format!("{name}-cell"))?;
    println!("{name}: {}", picture.display());
    Ok(())
}

pub fn log_in(browser: &Browser, page: &Page) -> Result<()> {
    browser.open(&page.url, PASSWORD)?;
    let password = format!("{}{ENTER}", page.password);
    browser.click_and_type(PASSWORD, &password)?;
    browser.wait_for_text("Workspace")
}
