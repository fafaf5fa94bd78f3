//! The S3 prefill, from a real S3 server to the home directory.

use crate::context::FlavorContext;
use crate::page::{Page, hides};
use crate::s3_server::S3Server;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use wharf_tests::{Api, until};

const OBJECTS: usize = 12;
const LOG: &str = "cat ~/s3-prefill.log 2>/dev/null || true";

/// Checks that all objects are downloaded once, as the user's own files, and that no secret is
/// visible.
pub fn prefill(context: &FlavorContext) -> Result<()> {
    let s3 = S3Server::start(OBJECTS)?;
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let page = Page::create(&api, "marimo", &s3.fields("data/set"))?;
    let instance = &page.instance;
    let log = has_arrived(context, instance, &s3)?;
    for secret in [&s3.secret, &s3.key] {
        hides(context, instance, secret)?;
        ensure!(
            !log.contains(secret.as_str()),
            "a key is in the prefill's log"
        );
        let kept = format!("grep -rlF {secret} /etc /var /home /root /tmp /run || true");
        let kept = context.inside(instance, &kept)?;
        ensure!(kept.is_empty(), "the key is still in {kept}");
    }
    // After a restart, the user's own changes are still there, and nothing is downloaded.
    context.inside_as_user(instance, "rm ~/s3-prefill/part/3.txt")?;
    page.restart(&api)?;
    let left = context.inside_as_user(instance, "ls ~/s3-prefill/part | wc -l")?;
    ensure!(left == (OBJECTS - 1).to_string(), "{left}");
    ensure!(s3.downloads()? == OBJECTS, "a restart downloads again");
    page.delete(&api)?;
    is_not_waited_for(context, &api, "marimo", &s3)?;
    downloads_once(context, &api, "jupyterlab")?;

    takes_any_key_and_one_object(context, &api)?;
    let missing = s3.fields("no-such-bucket");
    goes_wrong(context, &api, &missing, "no such bucket")?;
    goes_wrong(context, &api, &s3.fields("data/nothing"), "no object")?;
    let mut wrong = s3.fields("data");
    wrong["s3_secret_access_key"] = json!("not-the-secret-that-was-given");
    goes_wrong(context, &api, &wrong, "SignatureDoesNotMatch")?;
    let mut closed = s3.fields("data");
    closed["s3_endpoint_url"] = json!(s3.url.replace(":9000", ":9001"));
    goes_wrong(context, &api, &closed, "connection refused")?;
    server.finish()
}

/// A shorter check for another flavor.
pub fn downloads_once(context: &FlavorContext, api: &Api, flavor: &str) -> Result<S3Server> {
    let s3 = S3Server::start(OBJECTS)?;
    let page = Page::create(api, flavor, &s3.fields("data/set"))?;
    has_arrived(context, &page.instance, &s3)?;
    page.restart(api)?;
    ensure!(s3.downloads()? == OBJECTS, "a restart downloads again");
    page.delete(api)?;
    Ok(s3)
}

/// Checks that exactly `data/set` is in the home directory; returns the log.
fn has_arrived(context: &FlavorContext, instance: &Value, s3: &S3Server) -> Result<String> {
    let log = log_with(context, instance, "S3 prefill: done")?;
    // The object with the name of the log comes too.
    ensure!(log.contains(&format!("{} files", OBJECTS + 1)), "{log}");
    let files = "find ~/s3-prefill/part -type f -user user | wc -l; tail -n 1 ~/s3-prefill/part/7.txt; \
                 find ~/s3-prefill -name 'elsewhere*' | wc -l";
    let files = context.inside_as_user(instance, files)?;
    ensure!(files == format!("{OBJECTS}\nobject 7\n0"), "{files}");
    ensure!(s3.downloads()? == OBJECTS, "{} downloads", s3.downloads()?);
    Ok(log)
}

/// With an unreachable server, the instance runs while the download still tries, and the keys stay
/// hidden.
pub fn is_not_waited_for(
    context: &FlavorContext,
    api: &Api,
    flavor: &str,
    s3: &S3Server,
) -> Result<()> {
    let mut silent = s3.fields("data/set");
    // The node's own end of the cable, which instances cannot reach.
    silent["s3_endpoint_url"] = json!(s3.url.replace(".2:9000", ".1:9000"));
    let page = Page::create(api, flavor, &silent)?;
    let log = log_with(context, &page.instance, "begins")?;
    ensure!(!log.contains("FAILED"), "{log}");
    for secret in [&s3.secret, &s3.key] {
        hides(context, &page.instance, secret)?;
    }
    context
        .inside(&page.instance, "pgrep -x rclone")
        .context("the download has ended too early")?;
    page.delete(api)
}

/// Checks secrets that the files of rclone and of other clients read in ways of their own, on a path that is
/// one object.
fn takes_any_key_and_one_object(context: &FlavorContext, api: &Api) -> Result<()> {
    for secret in ["a%(b)s%c/1234", "`d\"e'f+5678", "\"quoted=90\""] {
        let s3 = S3Server::start_with(OBJECTS, Some(secret))?;
        let page = Page::create(api, "marimo", &s3.fields("data/elsewhere.txt"))?;
        let log = log_with(context, &page.instance, "S3 prefill: ")?;
        let log = if log.contains("done") || log.contains("FAILED") {
            log
        } else {
            log_with(context, &page.instance, "done")?
        };
        ensure!(log.contains("done, 1 files"), "{secret}: {log}");
        ensure!(!log.contains(secret), "the secret is in the log");
        let found = context.inside_as_user(&page.instance, "cat ~/s3-prefill/elsewhere.txt")?;
        ensure!(found == "not in the prefix", "{found}");
        page.delete(api)?;
    }
    Ok(())
}

/// Checks that the instance runs after a failed download, and that the log has the reason but no
/// secret.
fn goes_wrong(context: &FlavorContext, api: &Api, fields: &Value, words: &str) -> Result<()> {
    let page = Page::create(api, "marimo", fields)?;
    let log = log_with(context, &page.instance, "FAILED")?;
    ensure!(log.contains(words), "{words:?} is not in the log:\n{log}");
    let secret = fields["s3_secret_access_key"].as_str().context("secret")?;
    ensure!(!log.contains(secret), "the secret is in the log");
    hides(context, &page.instance, secret)?;
    let state = api.instance(&page.name)?.expect(200)?["state"].clone();
    ensure!(state == "running", "{state}");
    page.delete(api)
}

/// Waits until the prefill's log has this text; returns the log.
fn log_with(context: &FlavorContext, instance: &Value, words: &str) -> Result<String> {
    until(&format!("the prefill's log says {words:?}"), || {
        let log = context.inside_as_user(instance, LOG)?;
        Ok(log.contains(words).then_some(log))
    })
    .with_context(|| context.inside_as_user(instance, LOG).unwrap_or_default())
}
