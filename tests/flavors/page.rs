//! Tests of the page that all web flavors share.

use crate::context::FlavorContext;
use crate::tool::Tool;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use ureq::Agent;
use wharf_tests::browser::{Browser, CONTROL, ENTER};
use wharf_tests::{
    Api, KeyPair, Login, OpenSsh, Server, Shell, Terminal, Tunnel, eventually, small, until,
};

/// The deadline of a cell's output; a ready kernel answers sooner.
const OUTPUT_DEADLINE: Duration = Duration::from_secs(20);

/// A search for a secret, whose argument is the secret from end to begin.
const SEARCH: &str = "
import json, os, subprocess, sys
secret = sys.argv[1][::-1]
grep = ['sudo', 'grep', '-rlsIF', '--file=-', '/etc', '/home', '/opt/wharf', '/root', '/run', '/srv', '/tmp', '/usr/local', '/var']
places = subprocess.run(grep, input=secret, capture_output=True, text=True).stdout.split()
processes = 0
for pid in filter(str.isdigit, os.listdir('/proc')):
    try:
        memory, maps = open(f'/proc/{pid}/mem', 'rb', 0), open(f'/proc/{pid}/maps').readlines()
    except OSError:
        continue
    if int(pid) == os.getpid():
        continue
    processes += 1
    for line in maps:
        begin, end = (int(n, 16) for n in line.split()[0].split('-'))
        try:
            memory.seek(begin)
            if secret.encode() in memory.read(end - begin):
                places.append(open(f'/proc/{pid}/cmdline').read())
                break
        except (OSError, OverflowError, ValueError):
            continue
print(json.dumps({'places': places, 'processes': processes}))";

/// The password field of all notebook servers.
const PASSWORD: &str = "input[name=password]";

/// A running instance of a web flavor.
pub struct Page {
    pub instance: Value,
    pub name: String,
    pub url: String,
    flavor: String,
    password: String,
    pair: KeyPair,
    tool: &'static Tool,
}

impl Page {
    /// Creates it and waits until it is running, so that the page answers.
    pub fn create(api: &Api, flavor: &str, more: &Value) -> Result<Self> {
        let mut body = small("container");
        body["flavor"] = json!(flavor);
        body["name"] = json!(format!("page-{flavor}"));
        body["n_vcpus"] = json!(2);
        body["mem_gib"] = json!(2);
        let pair = KeyPair::new()?;
        body["public_key"] = json!(pair.public);
        for (field, value) in more.as_object().into_iter().flatten() {
            body[field] = value.clone();
        }
        let begin = Instant::now();
        let created = api.create(&body)?.expect(201)?;
        let name = created["name"].as_str().context("name")?.to_owned();
        let instance = api.wait_for(&name, "running")?;
        println!("{flavor}: running after {:?}", begin.elapsed());
        let text = |field: &str| instance[field].as_str().map(str::to_owned).context("text");
        let page = Self {
            url: text("webapp_url")?,
            password: text("original_service_password")?,
            flavor: flavor.to_owned(),
            tool: Tool::of(flavor),
            pair,
            name,
            instance,
        };
        let answer = status(&page.url, None).with_context(|| "running, but without a page")?;
        ensure!(
            [200, 302, 303].contains(&answer),
            "running, but the page answers {answer}"
        );
        Ok(page)
    }

    /// Checks that a shell runs beside the page, for the host, by password and by key, and for the user
    /// through the host, with files. An SSH server that ends is started again.
    pub fn has_a_private_shell(
        &self,
        context: &FlavorContext,
        server: &Server,
        api: &Api,
    ) -> Result<()> {
        ensure!(self.instance["ssh_command"].is_null());
        self.reaches_a_shell(&Login::Password(&self.password))?;
        let first = "pkill --exact --oldest sshd && sleep 0.1 && ! pgrep --exact sshd";
        context.inside(&self.instance, first)?;
        until("SSH again", || {
            Ok(self.reaches_a_shell(&Login::Key(&self.pair)).ok())
        })?;
        let mut terminal = Terminal::open(api, &self.name, "")?;
        terminal.wait_for_from(0, "$ ")?;
        terminal.run("echo $((6*7))", "42\r\n")?;
        let mut tunnel = Tunnel::open(api, &self.name, 22)?;
        ensure!(tunnel.read()?.starts_with(b"SSH-2.0-"));
        let shell = Shell::signed_in(server, "ann@example.com")?;
        OpenSsh::of(shell)?.copies_files(&self.name, 1_000_000)
    }

    fn reaches_a_shell(&self, login: &Login<'_>) -> Result<()> {
        let output = login.run_as(&self.instance, "user@127.0.0.1", "id -un; pwd")?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(said.trim() == "user\n/home/user", "{output:?}");
        Ok(())
    }

    /// Checks that the page opens with the credential that the host adds.
    pub fn opens_for_the_host(&self, context: &FlavorContext) -> Result<()> {
        let credential = credential_is_kept(context, self.tool, &self.instance)?;
        let interface = format!("{}{}", self.url, self.tool.interface);
        let answers = [Some("token wrong"), Some(credential.as_str())]
            .map(|credential| status(&interface, credential));
        let [wrong, right] = answers;
        ensure!(
            [401, 403, 303].contains(&wrong?),
            "a wrong credential opens"
        );
        ensure!(right? == 200, "the host's credential does not open");
        Ok(())
    }

    /// Checks that a wrong password is refused, that the right one works, and that `code` in a cell
    /// of a new notebook writes 42001.
    pub fn runs_a_cell(&self, code: &str) -> Result<()> {
        let closed = status(&format!("{}{}", self.url, self.tool.interface), None)?;
        ensure!(
            [401, 403, 303].contains(&closed),
            "without a password: {closed}"
        );
        let picture = |name: &str| format!("{}-{name}", self.flavor);
        let browser = Browser::start("flavors")?;
        browser.open(&self.url, PASSWORD)?;
        ensure!(browser.address()?.contains(self.tool.login));
        browser.screenshot(&picture("login"))?;
        browser.click_and_type(PASSWORD, &format!("wrong{ENTER}"))?;
        browser.wait_for_text(self.tool.refusal)?;
        self.log_in(&browser)?;
        browser.screenshot(&picture("home"))?;
        let cell = self.tool.new_notebook(&browser, &self.url)?;
        run_cell(&browser, cell, code, "42001")?;
        let picture = browser.screenshot(&picture("cell"))?;
        println!("{}: {}", self.flavor, picture.display());
        Ok(())
    }

    /// Enters the password and waits for the complete page.
    pub fn log_in(&self, browser: &Browser) -> Result<()> {
        browser.open(&self.url, PASSWORD)?;
        let password = format!("{}{ENTER}", self.password);
        browser.click_and_type(PASSWORD, &password)?;
        browser.loads_with(&self.url, self.tool.inside)
    }

    /// Stops and restarts the instance.
    pub fn restart(&self, api: &Api) -> Result<()> {
        api.act(&self.name, "stop")?.expect(200)?;
        api.act(&self.name, "restart")?.expect(200)?;
        api.wait_for(&self.name, "running").map(drop)
    }

    /// Deletes the instance.
    pub fn delete(&self, api: &Api) -> Result<()> {
        api.delete(&self.name)?.expect(204).map(drop)
    }

    /// Checks that only the instance's user can see the password.
    pub fn keeps_its_password(&self, context: &FlavorContext) -> Result<()> {
        hides(context, &self.instance, &self.password)
    }
}

/// Checks that the secret of the host is known to the login user alone, and returns its credential.
pub fn credential_is_kept(
    context: &FlavorContext,
    tool: &Tool,
    instance: &Value,
) -> Result<String> {
    let access = format!("stat -c '%U %a' {}", tool.credential.file);
    ensure!(context.inside(instance, &access)? == tool.credential.access);
    let credential = tool.credential_of(context, instance)?;
    let (_, secret) = credential.split_once(' ').context("no secret")?;
    hides(context, instance, secret)?;
    Ok(credential)
}

/// Checks that programs of the login user find a secret in no file, as root, and in no process.
pub fn is_unknown_inside(context: &FlavorContext, instance: &Value, secret: &str) -> Result<()> {
    // The secret itself is in no argument of the search.
    let reversed: String = secret.chars().rev().collect();
    let found = context.inside_as_user(instance, &format!("python3 -c \"{SEARCH}\" {reversed}"))?;
    println!("a search for the password: {found}");
    let found: Value = serde_json::from_str(&found)?;
    ensure!(
        found["processes"].as_u64() > Some(0),
        "nothing was read: {found}"
    );
    ensure!(found["places"] == json!([]), "the password is in {found}");
    Ok(())
}

/// Checks that a secret is in no inspect output, process list, environment or output of the
/// container.
pub fn hides(context: &FlavorContext, instance: &Value, secret: &str) -> Result<()> {
    ensure!(secret.len() >= 8, "the secret is too short for a search");
    let inspected = context.inspect(instance)?.to_string();
    ensure!(
        !inspected.contains(secret),
        "the secret is in the engine's inspect"
    );
    let seen = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'";
    let seen = context.inside(instance, seen)?;
    ensure!(seen.contains("HOME="), "no environments: {seen}");
    ensure!(
        !seen.contains(secret),
        "the secret is in an argument or an environment"
    );
    let logged = context.output_of(instance)?;
    ensure!(
        !logged.contains(secret),
        "the secret is in the container's output"
    );
    ensure!(
        context.inside(instance, "ls -A /etc/wharf")?.is_empty(),
        "the files of the first start are still there"
    );
    Ok(())
}

/// Runs code in a notebook's first cell until it has this output. A page without a kernel, or one
/// that still loads, drops the input.
pub fn run_cell(browser: &Browser, cell: &str, code: &str, output: &str) -> Result<()> {
    until(&format!("`{code}` gives {output}"), || {
        browser.click_and_type(cell, &format!("{CONTROL}a"))?;
        browser.type_keys(code)?;
        browser.type_keys(&format!("{CONTROL}{ENTER}"))?;
        let appears = eventually("output", OUTPUT_DEADLINE, || {
            Ok(browser.text().contains(output).then_some(()))
        });
        Ok(appears.ok())
    })
    .with_context(|| browser.text())
}

/// Returns the status of an answer, without following redirects.
pub fn status(url: &str, credential: Option<&str>) -> Result<u16> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_global(Some(Duration::from_secs(30)))
        .build();
    let agent: Agent = config.into();
    let mut request = agent.get(url);
    if let Some(credential) = credential {
        request = request.header("Authorization", credential);
    }
    Ok(request.call()?.status().as_u16())
}
