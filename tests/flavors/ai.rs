//! The AI key: only in the assistants' files, and on its way to the provider.

use crate::context::FlavorContext;
use crate::outside::Outside;
use crate::page::{Page, hides};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::process::{Command, Stdio};
use tempfile::NamedTempFile;
use wharf_testkit::child::KilledOnDrop;
use wharf_testkit::workspace::root;
use wharf_tests::browser::Browser;
use wharf_tests::until;

pub const KEY: &str = "sk-test-9f41c07be2d84c5c9d";
/// A notebook's session id, in the form of marimo's pages.
const SESSION: &str = "s_abc123";
/// Sends messages to Jupyternaut repeatedly, as the page's chat does: it misses those before it has
/// joined.
const ASK_JUPYTERNAUT: &str = r"
    window.said = [];
    window.chat = new WebSocket(`ws://${location.host}/api/chat/ws/question.chat`);
    chat.onmessage = event => said.push(event.data);
    const persona = 'jupyter-ai-personas::jupyter_ai_jupyternaut::JupyternautPersona';
    setInterval(() => chat.readyState === WebSocket.OPEN && chat.send(JSON.stringify({
        type: 'client', action: 'send', id: `${Math.random()}`, body: 'hello',
        metadata: { to_persona: persona },
    })), 3000);";
/// The directory of Jupyternaut's settings.
const JUPYTERNAUT: &str = "~/.local/share/jupyter/jupyter_ai";
/// The key files of the assistants: the terminal's, marimo's, Jupyter AI's.
pub const TERMINAL: &str = "/home/user/.local/share/opencode/auth.json";
pub const MARIMO: &str = "/home/user/.config/marimo/marimo.toml";
pub const JUPYTER: &str = "/home/user/.env";

pub fn reaches_the_assistants(context: &FlavorContext) -> Result<()> {
    let provider = ModelProvider::start()?;
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let key = json!({ "ai_provider_api_key": KEY });

    let page = Page::create(&api, "marimo", &key)?;
    is_kept_in(context, &page.instance, &[MARIMO, TERMINAL])?;
    hides(context, &page.instance, KEY)?;
    provider.is_asked_from_the_terminal(context, &page.instance)?;
    let address = format!("echo 'base_url = \"{}\"' >> {MARIMO}", provider.url);
    context.inside_as_user(&page.instance, &address)?;
    page.restart(&api)?;
    provider.is_asked_by_marimo(&page)?;
    hides(context, &page.instance, KEY)?;
    is_not_cloned(context, &page.instance)?;
    page.delete(&api)?;

    let page = Page::create(&api, "jupyterlab", &key)?;
    is_kept_in(context, &page.instance, &[JUPYTER, TERMINAL])?;
    hides(context, &page.instance, KEY)?;
    let browser = Browser::start("flavors")?;
    page.log_in(&browser)?;
    is_known_to_jupyter_ai(&browser)?;
    provider.is_asked_by_jupyternaut(context, &page.instance, &browser)?;
    page.delete(&api)?;

    let written = server.data_and_log()?;
    let key = KEY.as_bytes();
    ensure!(
        !written.windows(key.len()).any(|part| part == key),
        "the server's log or data contains the key"
    );
    server.finish()
}

/// Checks that only these files contain the key, and that only the login user can read them.
pub fn is_kept_in(context: &FlavorContext, instance: &Value, files: &[&str]) -> Result<()> {
    let find = format!("grep -srlF {KEY} /etc /var /home /root /tmp /run /opt/opencode | sort");
    let found = context.inside(instance, &find)?;
    ensure!(found == files.join("\n"), "the key is in: {found}");
    if files.is_empty() {
        return Ok(());
    }
    let modes = format!("stat -c '%U %a' {}", files.join(" "));
    let modes = context.inside(instance, &modes)?;
    ensure!(modes.lines().all(|mode| mode == "user 600"), "{modes}");
    Ok(())
}

/// Checks that a first start without a key removes the key of the disk's earlier user. `tests/tools` has more
/// files.
fn is_not_cloned(context: &FlavorContext, instance: &Value) -> Result<()> {
    let start = format!(
        "set -e; echo 'ai = {{ open_ai = {{ api_key = \"{KEY}\", model = \"m\" }} }}' >{MARIMO}; \
         echo 'export OPENAI_API_KEY={KEY}' >{JUPYTER}; chown -R root: /home/user/.local; \
         FIRST_BOOT=/nowhere /usr/local/lib/wharf/first-boot.d/assistant user; \
         test ! -e {TERMINAL}; test ! -e {JUPYTER}; cat {MARIMO}"
    );
    let left = context.inside(instance, &start)?;
    ensure!(left == "[ai.open_ai]\nmodel = \"m\"", "{left}");
    Ok(())
}

/// Checks that Jupyter AI's settings list the key by name, without its value.
fn is_known_to_jupyter_ai(browser: &Browser) -> Result<()> {
    let ask = "return fetch('/api/jupyternaut/secrets').then(answer => answer.text())";
    until("Jupyter AI knows the key", || {
        let known = browser.run(ask).unwrap_or_default().to_string();
        ensure!(!known.contains(KEY), "the output shows the key");
        Ok(known.contains("OPENAI_API_KEY").then_some(()))
    })
}

/// A provider on a machine of its own.
struct ModelProvider {
    _process: KilledOnDrop,
    asked: NamedTempFile,
    url: String,
    _outside: Outside,
}

impl ModelProvider {
    fn start() -> Result<Self> {
        let outside = Outside::new()?;
        let asked = NamedTempFile::new()?;
        let script = root().join("tests/flavors/ai_provider.py");
        let mut python = Command::new("python3");
        python.arg(script).arg(&outside.address);
        let process = outside
            .command(&python)
            .stdin(Stdio::piped())
            .stdout(File::create(asked.path())?)
            .spawn()?;
        Ok(Self {
            url: format!("http://{}:9100/v1", outside.address),
            _process: KilledOnDrop(process),
            asked,
            _outside: outside,
        })
    }

    /// Waits for a request with the key.
    fn is_asked(&self, what: &str) -> Result<()> {
        let line = until(what, || {
            let asked = fs::read_to_string(self.asked.path())?;
            Ok(asked.lines().next().map(str::to_owned))
        })?;
        ensure!(line.ends_with(&format!(" Bearer {KEY}")), "{line}");
        // The next assistant starts with an empty record.
        fs::OpenOptions::new()
            .write(true)
            .open(self.asked.path())?
            .set_len(0)?;
        Ok(())
    }

    fn is_asked_from_the_terminal(&self, context: &FlavorContext, instance: &Value) -> Result<()> {
        let config = json!({
            "model": "openai/any",
            "provider": {"openai": {
                "options": {"baseURL": self.url}, "models": {"any": {"name": "any"}},
            }},
        });
        let command = format!(
            "mkdir -p ~/.config/opencode && echo '{config}' > ~/.config/opencode/opencode.json \
             && timeout 100 opencode run hello 2>&1; true"
        );
        let said = context.inside_as_user(instance, &command)?;
        ensure!(!said.contains(KEY), "the output shows the key");
        println!("opencode: {said}");
        self.is_asked("the terminal's assistant asks the provider")
    }

    fn is_asked_by_marimo(&self, page: &Page) -> Result<()> {
        let browser = Browser::start("flavors")?;
        page.log_in(&browser)?;
        let notebook = format!("{}?file=__new__&session_id={SESSION}", page.url);
        browser.open(&notebook, ".cm-content")?;
        let ask = format!(
            "return fetch('/api/ai/completion', {{method: 'POST', \
             headers: {{'Content-Type': 'application/json', 'Marimo-Session-Id': '{SESSION}', \
             'Marimo-Server-Token': \
             document.querySelector('marimo-server-token')?.dataset.token ?? ''}}, \
             body: JSON.stringify({{prompt: 'add', code: '', includeOtherCode: ''}})}}) \
             .then(answer => answer.text())"
        );
        // A page that reloads discards its scripts.
        let said = until("marimo answers", || Ok(browser.run(&ask).ok()))?;
        println!("marimo: {said}");
        self.is_asked("marimo asks the provider")
    }

    fn is_asked_by_jupyternaut(
        &self,
        context: &FlavorContext,
        instance: &Value,
        browser: &Browser,
    ) -> Result<()> {
        let settings = json!({
            "model_provider_id": "openai/any",
            "fields": { "openai/any": { "api_base": self.url } },
        });
        let write =
            format!("mkdir -p {JUPYTERNAUT} && echo '{settings}' > {JUPYTERNAUT}/config.json");
        context.inside_as_user(instance, &write)?;
        browser.run(ASK_JUPYTERNAUT)?;
        let asked = self.is_asked("Jupyternaut asks the provider");
        let said = browser.run("return said.join('\\n')")?.to_string();
        ensure!(!said.contains(KEY), "the output shows the key");
        println!("Jupyternaut: {said}");
        asked
    }
}
