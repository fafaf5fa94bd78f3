//! The notebook servers that every run tests.

use crate::context::FlavorContext;
use crate::page::Page;
use anyhow::{Result, ensure};
use serde_json::json;
use wharf_tests::browser::Browser;

const CODE: &str = "print(6 * 7 * 1000 + 1)";

pub fn marimo(context: &FlavorContext) -> Result<()> {
    runs_a_cell(context, "marimo")
}

pub fn jupyterlab(context: &FlavorContext) -> Result<()> {
    runs_a_cell(context, "jupyterlab")
}

/// Runs a cell on a page behind the instance's password. The password and the home directory
/// survive a stop.
fn runs_a_cell(context: &FlavorContext, flavor: &str) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let page = Page::create(&api, flavor, &json!({}))?;
    page.has_a_private_shell(context, &server, &api)?;
    page.opens_for_the_host(context)?;
    page.keeps_its_password(context)?;
    page.runs_a_cell(CODE)?;
    context.inside_as_user(&page.instance, "echo kept > ~/file")?;
    page.restart(&api)?;
    page.log_in(&Browser::start("flavors")?)?;
    ensure!(context.inside_as_user(&page.instance, "cat ~/file")? == "kept");
    page.delete(&api)?;
    server.finish()
}
