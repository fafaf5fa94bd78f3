//! JupyterLab in a browser.

use crate::browser::{Browser, ENTER};
use crate::context::Context;
use crate::page::{PASSWORD, Page, run_cell, status};
use anyhow::{Result, ensure};
use serde_json::json;

pub fn runs_a_cell(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let page = Page::create(&api, "jupyterlab", &json!({}))?;
    page.has_no_ssh(context)?;
    page.keeps_its_password(context)?;
    in_the_browser(&page, "jupyterlab", "Python 3", "print(6 * 7 * 1000 + 1)")?;
    let name = page.instance["name"].as_str().unwrap_or_default();
    api.act(name, "stop")?.expect(200)?;
    api.act(name, "restart")?.expect(200)?;
    api.wait_for(name, "running")?;
    log_in(&Browser::start()?, &page)?;
    api.delete(name)?.expect(204)?;
    server.finish()
}

/// A wrong password is refused, the right one let in, and a cell of a new notebook with this kernel
/// runs; its `code` writes 42001.
pub fn in_the_browser(page: &Page, name: &str, kernel: &str, code: &str) -> Result<()> {
    let closed = status(&format!("{}api/contents", page.url), "")?;
    ensure!(closed == 403, "without a password: {closed}");
    let browser = Browser::start()?;
    browser.open(&page.url, PASSWORD)?;
    ensure!(browser.address()?.contains("/login"));
    browser.screenshot(&format!("{name}-login"))?;
    browser.click_and_type(PASSWORD, &format!("wrong{ENTER}"))?;
    browser.wait_for_text("Invalid credentials")?;
    log_in(&browser, page)?;
    let card = format!(".jp-LauncherCard[data-category=Notebook][title^='{kernel}']");
    browser.click_and_type(&card, "")?;
    run_cell(&browser, ".jp-Notebook .cm-content", code, "42001")?;
    let picture = browser.screenshot(&format!("{name}-cell"))?;
    println!("{name}: {}", picture.display());
    Ok(())
}

pub fn log_in(browser: &Browser, page: &Page) -> Result<()> {
    browser.open(&page.url, PASSWORD)?;
    let password = format!("{}{ENTER}", page.password);
    browser.click_and_type(PASSWORD, &password)?;
    // In the menu, whatever the notebooks of the last time are.
    browser.wait_for_text("Kernel")
}
