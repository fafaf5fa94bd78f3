//! axe-core, which looks for barriers on a page.

use crate::npm;
use anyhow::{Context, Result, ensure};
use std::sync::OnceLock;
use wharf_tests::browser::Browser;

/// The script, one of the console's development dependencies.
fn script() -> Result<&'static str> {
    static SCRIPT: OnceLock<String> = OnceLock::new();
    if let Some(script) = SCRIPT.get() {
        return Ok(script);
    }
    let path = npm::install()?.join("node_modules/axe-core/axe.min.js");
    let script = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(SCRIPT.get_or_init(|| script))
}

/// Checks the present page.
pub fn check(browser: &Browser, page: &str) -> Result<()> {
    browser.run(&format!(
        "if (!window.axe) {{ {}\n}}\nreturn true",
        script()?
    ))?;
    let findings = browser.run_async(
        "const { violations } = await axe.run(document, { resultTypes: ['violations'] });
         return violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' | ')}`);",
    )?;
    let findings = findings.as_array().context("axe returned no list")?;
    ensure!(findings.is_empty(), "{page}: {findings:#?}");
    Ok(())
}
