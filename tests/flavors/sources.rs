//! `rserver` on RStudio Server and `genomics` with GATK, by sources that lead to stand-ins of the originals.

use crate::ai::{self, KEY, TERMINAL};
use crate::context::FlavorContext;
use crate::larger::over_ssh;
use crate::page::{Page, hides, status};
use crate::s3;
use crate::visitor::{self, Visitor};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use toml::Table;
use ureq::Agent;
use wharf_testkit::child::KilledOnDrop;
use wharf_testkit::workspace::{root, target};
use wharf_tests::browser::Browser;
use wharf_tests::lanes::is_whole_run;
use wharf_tests::{Registry, Server, succeed, write_private};

/// The text of the stand-in's page, whose session runs as the login user.
const SESSION: &str = "A session of user";
/// A script that uses the stand-in's page: a long poll, meanwhile a WebSocket and an upload, and the poll's event.
const WORK: &str = "
    const text = (answer) => answer.text();
    const poll = fetch('/events').then(text);
    const echo = await new Promise((end) => {
      const socket = new WebSocket(location.origin.replace('http', 'ws') + '/socket');
      socket.onopen = () => socket.send('over the socket');
      socket.onmessage = (message) => { socket.close(); end(message.data); };
      socket.onerror = () => end('refused');
    });
    const body = new Uint8Array(5e6).fill(7);
    const upload = await fetch('/upload', { method: 'POST', body }).then(text);
    await fetch('/events', { method: 'POST', body: 'an event' });
    return [echo, upload, await poll];";
/// The token of a private page, as its credential.
const CREDENTIAL: &str = "cut -d '\"' -f 2 /etc/nginx/wharf-token.conf";
/// The programs of the archive and of the other download.
const GATK: &str = "#!/bin/sh\ncat \"$(dirname \"$(realpath \"$0\")\")/version\"\n";
const NEXTFLOW: &str = "#!/bin/sh\necho \"nextflow version 29.9.9\"\n";
const TOOLS: &str = "[ \"$(gatk --version)\" = \"GATK v4.9.9\" ] && nextflow -v";

/// The recipes of the checkout with changes, and the files of `wharf images build`.
struct Sources(TempDir);

impl Sources {
    fn new() -> Result<Self> {
        let sources = Self(tempfile::tempdir()?);
        let recipes = sources.path("recipes");
        fs::create_dir(&recipes)?;
        links(&wharf_testkit::images::recipes().directory, &recipes)?;
        Ok(sources)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Adds a recipe that has the files of a directory, with another content of one.
    fn add(&self, name: &str, directory: &Path, file: &str, text: &str) -> Result<()> {
        let recipe = self.path("recipes").join(name);
        if recipe.exists() {
            fs::remove_file(&recipe)?;
        }
        fs::create_dir(&recipe)?;
        links(directory, &recipe)?;
        fs::remove_file(recipe.join(file))?;
        fs::write(recipe.join(file), text)?;
        Ok(())
    }

    /// Makes an image by these sources, on the nodes of a server, and returns what the command says of it.
    fn build(&self, server: &Server, image: &str, sources: &str) -> Result<String> {
        let file = self.path("sources.toml");
        fs::write(&file, sources)?;
        let paths = [
            ("--recipes", self.path("recipes")),
            ("--sources", file),
            ("--recorded", self.path("recorded.toml")),
            ("--cache", target().join("images")),
        ];
        let paths = paths.map(|(option, path)| format!("{option}={}", path.display()));
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        server.cli(
            &[
                &["images", "--output=json"][..],
                &paths[..],
                &["build", image],
            ]
            .concat(),
        )
    }
}

/// Links the entries of a directory in another one.
fn links(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)?.flatten() {
        symlink(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

pub fn rstudio(context: &FlavorContext) -> Result<()> {
    made_from_a_stand_in(context)?;
    asks_nothing_behind_the_gateway(context)?;
    asks_for_the_password_on_a_public_port(context)
}

/// Makes `rserver`. A whole run takes the shipped source from a registry, with all its recipes. A plain one puts
/// RStudio Server alone on an image that the engine has, which is `common` already.
fn made_from_a_stand_in(context: &FlavorContext) -> Result<()> {
    let sources = Sources::new()?;
    let directory = root().join("tests/flavors/rocker");
    let mut containerfile = fs::read_to_string(directory.join("Containerfile"))?;
    let shipped: Table = fs::read_to_string(sources.path("recipes/sources.toml"))?.parse()?;
    let original = shipped["rserver"]["from"][0]["image"].as_str();
    let (original_host, path) = original
        .and_then(|image| image.split_once('/'))
        .context("no image")?;
    let (mut settings, mut name) = (String::new(), "localhost/stand-in".to_owned());
    let mut own = String::new();
    let registry = is_whole_run().then(Registry::start).transpose()?;
    if let Some(registry) = &registry {
        containerfile = containerfile.replace("/common:1", "/base:1");
        let password = sources.path("password");
        write_private(&password, Registry::PASSWORD.as_bytes())?;
        name = registry.host();
        settings = format!(
            "[[registry]]\nhost = \"{name}\"\nuser = \"{}\"\npassword_file = {password:?}\n",
            Registry::USER
        );
        own = format!("[mirror]\n\"{original_host}/\" = \"{name}/\"\n");
    }
    sources.add("stand-in", &directory, "Containerfile", &containerfile)?;
    let server = context.server_with(&settings)?;
    sources.build(&server, "stand-in", "")?;
    let image = format!("{name}/{path}");
    context.tag("localhost/wharf/stand-in:1", &image)?;
    if registry.is_some() {
        context.push(&image)?;
    } else {
        own = format!(
            "[[rserver.from]]\nimage = \"{image}\"\nrecipes = [\"rocker\"]\nrecipe = \"rstudio\"\n\
             content = \"RStudio Server {{RSTUDIO_VERSION}}\"\n"
        );
    }
    // An image without a digest is not told from an earlier stand-in.
    context.forget("localhost/wharf/rserver:1")?;
    let made = sources.build(&server, "rserver", &own)?;
    ensure!(made.contains("RStudio Server 2026.04.9+1"), "{made}");
    server.finish()
}

/// Checks that the session of the console opens the page, which works, and that its port is closed to others.
fn asks_nothing_behind_the_gateway(context: &FlavorContext) -> Result<()> {
    let server = visitor::server(context)?;
    let browser = Browser::start("flavors")?;
    let ann = Visitor::invited(&server, &browser, "ann@example.com")?;
    let instance = ann.creates("studio", "rserver")?;
    ann.opens_with(&instance, SESSION)?;
    let done = browser.run_async(WORK)?;
    let wanted = json!(["over the socket", "5000000 bytes, sum 35000000", "an event"]);
    ensure!(done == wanted, "{done}");
    is_closed(context, &instance)?;
    ann.api.act("studio", "stop")?.expect(200)?;
    ann.api.act("studio", "restart")?.expect(200)?;
    ann.api.wait_for("studio", "running")?;
    ann.opens_with(&instance, SESSION)?;
    is_closed(context, &instance)?;
    ann.api.delete("studio")?.expect(204)?;
    server.finish()
}

/// Checks that the port of a private page takes the token of the gateway alone, which no other program knows.
fn is_closed(context: &FlavorContext, instance: &Value) -> Result<()> {
    let port = context.published(instance, "8787/tcp")?;
    let url = format!("http://127.0.0.1:{port}/");
    let credential = context.inside(instance, CREDENTIAL)?;
    let (_, token) = credential.split_once(' ').context("no token")?;
    hides(context, instance, token)?;
    let access = context.inside(instance, "stat -c '%U %a' /etc/nginx/wharf-token.conf")?;
    ensure!(access == "root 600", "{access}");
    for (credential, wanted) in [
        (None, 403),
        (Some("token wrong"), 403),
        (Some(credential.as_str()), 200),
    ] {
        let got = status(&url, credential)?;
        ensure!(got == wanted, "{got} rather than {wanted}");
    }
    Ok(())
}

/// Checks that a page on a public port takes the password of the login account, also a new one.
fn asks_for_the_password_on_a_public_port(context: &FlavorContext) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let page = Page::create(&api, "rserver", &json!({ "ai_provider_api_key": KEY }))?;
    let instance = &page.instance;
    page.keeps_its_password(context)?;
    ai::is_kept_in(context, instance, &[TERMINAL])?;
    if is_whole_run() {
        page.has_a_private_shell(context, &server, &api)?;
        context.inside_as_user(
            instance,
            "samtools --version && bedtools --version && plink2 --version",
        )?;
    }
    let password = instance["original_service_password"].as_str();
    let password = password.context("no password")?;
    ensure!(status(&page.url, None)? == 302, "no sign-in");
    ensure!(!signs_in(&page.url, "rstudio")? && signs_in(&page.url, password)?);
    context.inside(instance, "echo user:another-password | chpasswd")?;
    page.restart(&api)?;
    ensure!(!signs_in(&page.url, password)? && signs_in(&page.url, "another-password")?);
    page.delete(&api)?;
    if is_whole_run() {
        s3::downloads_once(context, &api, "rserver")?;
    }
    server.finish()
}

/// Sends the form of a sign-in, and returns whether it leads to the page.
fn signs_in(url: &str, password: &str) -> Result<bool> {
    let config = Agent::config_builder().max_redirects(0).build();
    let form = [("username", "user"), ("password", password)];
    let answer = Agent::from(config)
        .post(format!("{url}auth-do-sign-in"))
        .send_form(form)?;
    let to = answer.headers().get("location").context("no answer")?;
    Ok(to.as_bytes() == b"/")
}

/// Makes `genomics` from downloads, and runs them in an instance and without a network. The list of packages is
/// short, because each source of the flavor has it.
pub fn genomics(context: &FlavorContext) -> Result<()> {
    let sources = Sources::new()?;
    let recipe = wharf_testkit::images::recipes().directory.join("genomics");
    sources.add("genomics", &recipe, "packages", "unzip\n")?;
    let files = sources.path("files");
    let gatk = files.join("gatk-4.9.9");
    fs::create_dir_all(&gatk)?;
    fs::write(gatk.join("gatk"), GATK)?;
    fs::set_permissions(gatk.join("gatk"), fs::Permissions::from_mode(0o755))?;
    fs::write(gatk.join("version"), "GATK v4.9.9\n")?;
    fs::write(files.join("nextflow-dist"), NEXTFLOW)?;
    succeed(
        Command::new("python3")
            .args(["-m", "zipfile", "-c", "gatk-4.9.9.zip", "gatk-4.9.9"])
            .current_dir(&files),
    )?;
    let (_process, url) = serve(&files)?;
    let mut own = "[[genomics.from]]\ncontent = \"GATK 4.9.9\"\n".to_owned();
    for (file, name) in [
        ("gatk-4.9.9.zip", "gatk.zip"),
        ("nextflow-dist", "nextflow"),
    ] {
        let digest = Sha256::digest(fs::read(files.join(file))?);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        own += &format!(
            "[[genomics.from.download]]\nurl = \"{url}{file}\"\nname = \"{name}\"\nsha256 = \"{digest}\"\n"
        );
    }
    let server = context.server()?;
    let made = sources.build(&server, "genomics", &own)?;
    ensure!(made.contains("GATK 4.9.9"), "{made}");
    server.finish()?;
    let version = "nextflow version 29.9.9";
    over_ssh(context, "genomics", &[TERMINAL], TOOLS, version)?;
    let said = context.run_in("localhost/wharf/genomics:1", TOOLS)?;
    ensure!(said == version, "{said}");
    Ok(())
}

/// Serves the files of a directory, and returns the URL before their names.
fn serve(directory: &Path) -> Result<(KilledOnDrop, String)> {
    let process = Command::new("python3")
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut process = KilledOnDrop(process);
    let line = process.first_line()?;
    let url = line.split(['(', ')']).nth(1).context("no URL")?;
    Ok((process, url.to_owned()))
}
