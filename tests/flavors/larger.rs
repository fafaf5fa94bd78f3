//! The flavors with large images: their tools work, and their assistants have the AI key. The
//! scripts that run in the instances are in `inside/`.

use crate::ai::{self, JUPYTER, KEY, MARIMO, TERMINAL};
use crate::context::FlavorContext;
use crate::page::Page;
use crate::s3;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use wharf_tests::{Api, KeyPair, Login, OpenSsh, Shell, small};

/// One-line scripts, since they are typed into a cell. Each writes 42001.
const STACK_IN_A_CELL: &str = "import polars, torch; \
     x = torch.tensor(polars.Series([6.0, 7.0]).to_list()); print(int(x.prod() * 1000 + 1))";
const BIOCONDUCTOR_IN_A_CELL: &str = "suppressMessages(library(DESeq2)); \
     d <- DESeq(makeExampleDESeqDataSet(100, 6), quiet = TRUE); cat(nrow(results(d)) * 420 + 1)";
const MAPS_IN_A_CELL: &str = "suppressMessages({library(sf); library(stars)}); \
     cat(st_distance(st_point(c(0, 0)), st_point(c(3, 4))) * 8400 + 1)";

/// The clean flavor: it has no assistant, so it never stores the key.
pub fn base(context: &FlavorContext) -> Result<()> {
    let script = "python3 -c 'import ssl, sqlite3; print(6 * 7)' && ! command -v opencode";
    over_ssh(context, "base", &[], script, "42")
}

pub fn datascience(context: &FlavorContext) -> Result<()> {
    let script = python(include_str!("inside/datascience.py"));
    over_ssh(context, "datascience", &[TERMINAL], &script, "all agree")
}

/// The image of instances with a GPU, tested without one: this engine, of Debian 12, supports no
/// devices.
pub fn datascience_cuda(context: &FlavorContext) -> Result<()> {
    let script = [
        include_str!("inside/cuda.py"),
        include_str!("inside/datascience.py"),
    ];
    let script = python(&script.concat());
    let said = context.run_in(
        "localhost/wharf/datascience-cuda:1",
        &format!("PATH=/opt/python/bin:$PATH; {script}"),
    )?;
    ensure!(said.lines().last() == Some("all agree"), "{said}");
    Ok(())
}

pub fn genomics(context: &FlavorContext) -> Result<()> {
    let script = include_str!("inside/genomics.sh");
    over_ssh(context, "genomics", &[TERMINAL], script, "all is found")
}

pub fn datasciencemarimo(context: &FlavorContext) -> Result<()> {
    on_a_page(context, "datasciencemarimo", MARIMO, |api, page| {
        let script = python(include_str!("inside/datascience.py"));
        let said = context.inside_as_user(&page.instance, &script)?;
        ensure!(said.lines().last() == Some("all agree"), "{said}");
        page.runs_a_cell(STACK_IN_A_CELL)?;
        page.delete(api)
    })
}

pub fn rserver(context: &FlavorContext) -> Result<()> {
    on_a_page(context, "rserver", JUPYTER, |api, page| {
        context.inside_as_user(&page.instance, include_str!("inside/rserver.sh"))?;
        page.runs_a_cell(BIOCONDUCTOR_IN_A_CELL)?;
        page.delete(api)?;
        // The only one of these flavors with the S3 prefill.
        let s3 = s3::downloads_once(context, api, "rserver")?;
        s3::is_not_waited_for(context, api, "rserver", &s3)
    })
}

pub fn rgeospatial(context: &FlavorContext) -> Result<()> {
    on_a_page(context, "rgeospatial", JUPYTER, |api, page| {
        context.inside_as_user(&page.instance, include_str!("inside/rgeospatial.sh"))?;
        page.runs_a_cell(MAPS_IN_A_CELL)?;
        page.delete(api)
    })
}

/// Checks logins by key and by password. The AI key is in the `kept` files only, and the script's
/// last line is `last`.
pub fn over_ssh(
    context: &FlavorContext,
    flavor: &str,
    kept: &[&str],
    script: &str,
    last: &str,
) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let pair = KeyPair::new()?;
    let mut body = small("container");
    body["flavor"] = json!(flavor);
    body["name"] = json!(flavor);
    body["n_vcpus"] = json!(2);
    body["mem_gib"] = json!(2);
    body["public_key"] = json!(pair.public);
    body["ai_provider_api_key"] = json!(KEY);
    api.create(&body)?.expect(201)?;
    let running = api.wait_for(flavor, "running")?;
    ensure!(running["webapp_url"].is_null());
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    ensure!(Login::Password(password).output(&running, "echo in")? == "in");
    ai::is_kept_in(context, &running, kept)?;
    let said = Login::Key(&pair).output(&running, script)?;
    ensure!(said.lines().last() == Some(last), "{said}");
    let shell = Shell::signed_in(&server, "ann@example.com")?;
    OpenSsh::of(shell)?.copies_files(flavor, 1_000_000)?;
    api.delete(flavor)?.expect(204)?;
    server.finish()
}

/// Checks a web flavor with a provider's key, which `settings` stores for the page's assistant.
fn on_a_page(
    context: &FlavorContext,
    flavor: &str,
    settings: &str,
    prove: impl FnOnce(&Api, &Page) -> Result<()>,
) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let key: Value = json!({ "ai_provider_api_key": KEY });
    let page = Page::create(&api, flavor, &key)?;
    page.has_a_private_shell(context, &server, &api)?;
    page.opens_for_the_host(context)?;
    page.keeps_its_password(context)?;
    ai::is_kept_in(context, &page.instance, &[settings, TERMINAL])?;
    prove(&api, &page)?;
    server.finish()
}

/// Quotes a script for a shell.
fn python(script: &str) -> String {
    format!("python3 - <<'END'\n{script}END")
}
