//! The page of another owner, which is below the domain of a visitor's page, uses nothing of it.

use crate::context::FlavorContext;
use crate::open_gateway::OpenGateway;
use crate::tool::Tool;
use crate::visitor::{self, Visitor};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use wharf_tests::browser::{self, Browser};
use wharf_tests::until;

/// Attacks of a page on a JupyterLab at `target`. Their outcome is the part that a page can see. Each success
/// leaves a file with the victim.
const ATTACK: &str = "
    const pause = (ms) => new Promise((end) => setTimeout(end, ms));
    const post = { mode: 'no-cors', credentials: 'include', method: 'POST' };
    const file = (ext) => JSON.stringify({ type: 'file', ext });
    const socket = (path, message) => new Promise((end) => {
      const socket = new WebSocket(target.replace('http', 'ws') + path);
      socket.onopen = async () => {
        if (message) await pause(1000).then(() => socket.send(message));
        await pause(1000);
        end('open');
      };
      socket.onerror = () => end('refused');
    });
    const image = (path) => new Promise((end) => {
      const image = new Image();
      image.onload = () => end('open');
      image.onerror = () => end('refused');
      image.src = target + path;
    });
    const form = (to) => new Promise((end) => {
      const frame = document.createElement('iframe');
      frame.name = 'victim';
      document.documentElement.append(frame);
      const form = document.createElement('form');
      Object.assign(form, { method: 'POST', enctype: 'text/plain', action: target + '/api/contents', target: to });
      const field = document.createElement('input');
      Object.assign(field, { name: '{\"type\":\"file\",\"ext\":\".' + to + '\",\"x\":\"', value: '\"}' });
      form.append(field);
      document.documentElement.append(form);
      form.submit();
      setTimeout(end, 3000);
    });
    const outcome = {};
    await fetch(target + '/api/contents', { ...post, body: file('.fetch') }).catch(() => {});
    await fetch(target + '/api/terminals', post).catch(() => {});
    await form('victim');
    outcome.image = await image('/static/favicons/favicon.ico');
    outcome.terminal = await socket('/terminals/websocket/1', JSON.stringify(['stdin', 'touch untitled.terminal\\r']));
    outcome.events = await socket('/api/events/subscribe');
    outcome.answer = await fetch(target + '/api/contents', { credentials: 'include' })
      .then((answer) => answer.text(), () => 'refused');
    outcome.worker = await navigator.serviceWorker.register(target + '/worker.js')
      .then(() => 'registered', () => 'refused');
    return outcome;";
/// An attack of a page on a marimo at `target`, whose WebSocket is a session that runs code.
const ATTACK_ON_MARIMO: &str = "
    return new Promise((end) => {
      const query = '?session_id=s_evil01&file=__new__';
      const socket = new WebSocket(target.replace('http', 'ws') + '/ws' + query);
      socket.onmessage = () => end('open');
      socket.onerror = () => end('refused');
    });";
/// A form that leaves the page for the victim's.
const LEAVE: &str = "
    const form = document.createElement('form');
    Object.assign(form, { method: 'POST', enctype: 'text/plain', action: target + '/api/contents' });
    const field = document.createElement('input');
    Object.assign(field, { name: '{\"type\":\"file\",\"ext\":\".window\",\"x\":\"', value: '\"}' });
    form.append(field);
    document.documentElement.append(form);
    form.submit();";
/// Cookies for the whole domain: the names that decide something, and one that the victim's page has.
const TOSS: &str = "
    for (const name of ['__Host-wharf-page', '__Host-wharf-enter', '_xsrf'])
      document.cookie = name + '=evil; Domain=apps.localhost; Path=/; Secure';
    return document.cookie;";
/// 160 KB of cookies for the whole domain.
const BOMB: &str = "
    for (let n = 0; n < 40; n++)
      document.cookie = 'bomb' + n + '=' + 'x'.repeat(4000) + '; Domain=apps.localhost; Path=/';
    return document.cookie.length;";
/// The files that an attack that succeeds makes.
const MADE: [&str; 4] = [
    "untitled.fetch",
    "untitled.terminal",
    "untitled.victim",
    "untitled.window",
];

pub fn in_chromium(context: &FlavorContext) -> Result<()> {
    attack(context, &Browser::start("flavors")?, "chromium")
}

pub fn in_firefox(context: &FlavorContext) -> Result<()> {
    browser::install_firefox()?;
    attack(context, &Browser::start_firefox("flavors")?, "firefox")
}

fn attack(context: &FlavorContext, browser: &Browser, browser_name: &str) -> Result<()> {
    let server = visitor::server(context)?;
    // The page of Bob stays open in its tab, where Ann signs in afterwards.
    let bob = Visitor::invited(&server, browser, "bob@example.com")?;
    let evil = bob.creates("evil", "marimo")?;
    bob.opens(&evil, "marimo")?;
    let at_evil = opened(browser, &evil)?;
    browser.new_tab()?;
    let ann = Visitor::invited(&server, browser, "ann@example.com")?;
    let victim = ann.creates("victim", "jupyterlab")?;
    let notebook = ann.creates("notebook", "marimo")?;
    ann.opens(&notebook, "marimo")?;
    browser.new_tab()?;
    ann.opens(&victim, "jupyterlab")?;
    let at_victim = opened(browser, &victim)?;
    browser.switch_to(&at_evil)?;
    ensure!(browser.address()?.starts_with(visitor::origin(&evil)?));

    // A gateway without checks shows that each attack works.
    let port = context.published(&victim, "8888/tcp")?;
    let credential = Tool::of("jupyterlab").credential_of(context, &victim)?;
    let without_checks = OpenGateway::start(port, &credential)?;
    let open = format!("http://victim.apps.localhost:{}", without_checks.port());
    let outcome = tries(browser, ATTACK, &open)?;
    println!("{browser_name}, without checks: {outcome}");
    let wanted = json!({
        "image": "open", "terminal": "open", "events": "open",
        // The browser itself refuses these, with any server.
        "answer": "refused", "worker": "refused",
    });
    ensure!(outcome == wanted, "{outcome}");
    leaves(browser, &open, &evil)?;
    until("all attacks have worked", || {
        Ok((made(context, &victim)? == MADE).then_some(()))
    })
    .with_context(|| format!("{:?}", made(context, &victim)))?;
    context.inside_as_user(&victim, "rm ~/untitled.*")?;
    let port = context.published(&notebook, "2718/tcp")?;
    let credential = Tool::of("marimo").credential_of(context, &notebook)?;
    let without_checks = OpenGateway::start(port, &credential)?;
    let open = format!("http://notebook.apps.localhost:{}", without_checks.port());
    let outcome = tries(browser, ATTACK_ON_MARIMO, &open)?;
    ensure!(outcome == "open", "marimo without checks: {outcome}");

    // With the gateway of the server, none does.
    let target = visitor::origin(&victim)?;
    let outcome = tries(browser, ATTACK, target)?;
    println!("{browser_name}, with checks: {outcome}");
    for (name, ended) in outcome.as_object().context("no outcome")? {
        ensure!(ended == "refused", "{name} is {ended}");
    }
    let outcome = tries(browser, ATTACK_ON_MARIMO, visitor::origin(&notebook)?)?;
    ensure!(outcome == "refused", "marimo: {outcome}");
    leaves(browser, target, &evil)?;
    ensure!(
        made(context, &victim)?.is_empty(),
        "{:?}",
        made(context, &victim)
    );

    // Cookies of a neighbour decide nothing, and too many of them last until the next load.
    browser.run(TOSS)?;
    browser.switch_to(&at_victim)?;
    browser.open(&format!("{target}/lab"), "body")?;
    browser.loads_with(target, "Kernel")?;
    browser.switch_to(&at_evil)?;
    let length = browser.run(BOMB)?;
    ensure!(
        length.as_u64().is_some_and(|length| length > 150_000),
        "{length}"
    );
    browser.switch_to(&at_victim)?;
    browser.open(&format!("{target}/lab"), "body")?;
    let refused = "Headers too large";
    // A request of the page that is still open may have lost the cookies already.
    if browser.text().contains(refused) {
        browser.screenshot(&format!("cookie-bomb-{browser_name}"))?;
        browser.open(&format!("{target}/lab"), "body")?;
    }
    ensure!(
        !browser.text().contains(refused),
        "the cookies are still there"
    );
    browser.loads_with(&format!("{target}/lab"), "Kernel")?;
    server.finish()
}

/// Returns the tab of an instance's page.
fn opened(browser: &Browser, instance: &Value) -> Result<String> {
    let origin = visitor::origin(instance)?;
    for tab in browser.tabs()? {
        browser.switch_to(&tab)?;
        if browser.address()?.starts_with(origin) {
            return Ok(tab);
        }
    }
    anyhow::bail!("no tab of {origin}")
}

fn tries(browser: &Browser, script: &str, target: &str) -> Result<Value> {
    browser.run_async(&format!("const target = {};{script}", json!(target)))
}

/// Posts a form to the victim's page in the window, and opens the attacker's page again.
fn leaves(browser: &Browser, target: &str, evil: &Value) -> Result<()> {
    browser.run(&format!("const target = {};{LEAVE}", json!(target)))?;
    until("the window is at the victim's page", || {
        Ok(browser.address()?.starts_with(target).then_some(()))
    })?;
    let url = format!("{}/", visitor::origin(evil)?);
    browser.open(&url, "body")?;
    browser.loads_with(&url, "Workspace")
}

/// Returns the attacks that have left a file.
fn made(context: &FlavorContext, victim: &Value) -> Result<Vec<String>> {
    let files = context.inside_as_user(victim, "cd && ls -d untitled.* 2>/dev/null || true")?;
    Ok(files.lines().map(str::to_owned).collect())
}
