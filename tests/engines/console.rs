//! The console of a real instance, in a real browser.

use crate::context::EngineContext;
use anyhow::{Context as _, Result};
use std::time::Instant;
use wharf_tests::browser::{self, Browser, ENTER};

/// Signs in, creates an instance, opens its terminal, and types. Prints the times.
pub fn terminal(context: &EngineContext) -> Result<()> {
    browser::install()?;
    let server = context.server()?;
    let link = server.cli(&["user", "invite", "ann@example.com"])?;
    let link = link.trim();
    let (console, _) = link.split_once("/invite").context("no link")?;
    let browser = Browser::start("console")?;
    browser.open(link, "input[type=password]")?;
    browser.click_and_type("input[type=password]", "correct horse battery")?;
    click(&browser, "Accept the invitation")?;
    browser.wait_for_text("No instances yet")?;
    browser.open(&format!("{console}/instances/new"), "input[name=flavor]")?;
    browser.click_and_type("input[placeholder=calm-heron-7]", "by-console")?;
    let begin = Instant::now();
    click(&browser, "Create instance")?;
    // The link is there once the instance runs.
    click(&browser, "Open terminal")?;
    let opened = begin.elapsed();
    wait_for_output(&browser, "$ ")?;
    println!(
        "console: the instance runs {opened:?} after the create, and its terminal has a prompt {:?} \
         after it",
        begin.elapsed()
    );
    browser.click_and_type(".xterm-screen", "echo $((6*7)) $(hostname)")?;
    browser.type_keys(ENTER)?;
    wait_for_output(&browser, "42 by-console")?;
    browser.screenshot("real-terminal")?;
    drop(browser);
    server.finish()
}

/// Clicks on the button or link with this text, once it can be used.
fn click(browser: &Browser, text: &str) -> Result<()> {
    let script = format!(
        "const all = [...document.querySelectorAll('button, a')];
         const found = all.find((e) => e.textContent.trim() === '{text}' && !e.disabled);
         found?.click();
         return found !== undefined;"
    );
    browser.wait_for(text, &script).map(drop)
}

fn wait_for_output(browser: &Browser, words: &str) -> Result<()> {
    let script = format!(
        "return document.querySelector('.xterm-accessibility')?.textContent\
         .replaceAll('\u{a0}', ' ').includes('{words}')"
    );
    browser.wait_for(words, &script).map(drop)
}
