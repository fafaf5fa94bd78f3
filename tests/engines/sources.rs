//! The sources of images: alternatives in order, pins, the record, a mirror, downloads, and registries that fail.

use crate::context::EngineContext;
use crate::registry::{forget, push};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Command;
use tempfile::TempDir;
use wharf_testkit::http::{Body, Request};
use wharf_tests::{Registry, RegistryMode, wharf_binary, write_private};

/// The recipes, which have one Containerfile. `part` is no image of its own.
const RECIPES: [&str; 7] = ["part", "tool", "cut", "lie", "slow", "mirrored", "data"];
/// The base of the substitutes, which no registry has.
const PLAIN: &str = "localhost/lab/plain:1";
/// The content of the downloaded file.
const DATA: &str = "The data of a release.\n";

/// The settings of the test.
struct Place<'a> {
    context: &'a EngineContext,
    registry: Registry,
    dir: TempDir,
}

/// An ended `wharf images`.
struct Built {
    succeeded: bool,
    /// The images of `build -o json`.
    images: Value,
    /// The progress and the error.
    text: String,
}

impl Built {
    /// The image of this name, which was built without an error.
    fn image(&self, name: &str) -> Result<&Value> {
        ensure!(self.succeeded, "{}", self.text);
        let mut all = self.images.as_array().into_iter().flatten();
        let image = all.find(|image| image["image"] == name);
        image.with_context(|| format!("no {name} in {}", self.images))
    }

    /// Fails unless the build failed with all these words.
    fn failed(&self, words: &[&str]) -> Result<()> {
        let has_all = words.iter().all(|word| self.text.contains(word));
        ensure!(!self.succeeded && has_all, "{words:?}: {}", self.text);
        Ok(())
    }
}

impl<'a> Place<'a> {
    fn new(context: &'a EngineContext) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let base = format!("ARG BASE={PLAIN}\nFROM ${{BASE}}\nCOPY . /made\n");
        for recipe in RECIPES {
            let directory = dir.path().join("recipes").join(recipe);
            fs::create_dir_all(&directory)?;
            fs::write(directory.join("Containerfile"), &base)?;
        }
        let registry = Registry::start()?;
        let password = dir.path().join("password");
        write_private(&password, Registry::PASSWORD.as_bytes())?;
        let account = format!(
            "[[registry]]\nhost = \"{}\"\nuser = \"{}\"\npassword_file = {password:?}\n",
            registry.host(),
            Registry::USER,
        );
        let settings = format!(
            "listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n{account}{}",
            context.node("real")?
        );
        fs::write(dir.path().join("wharf.toml"), settings)?;
        seed(context, PLAIN, "0")?;
        Ok(Self {
            context,
            registry,
            dir,
        })
    }

    /// Puts an image with this version into the registry, and removes it from the engine. Returns its digest.
    fn publish(&self, name: &str, tag: &str, version: &str) -> Result<String> {
        let seeded = "localhost/lab/seed:1";
        seed(self.context, seeded, version)?;
        let name = format!("{}/{name}", self.registry.host());
        let digest = push(self.context, seeded, &name, tag)?;
        forget(self.context, seeded)?;
        Ok(digest)
    }

    /// Writes the operator's file of sources.
    fn sources(&self, text: &str) -> Result<()> {
        let shipped = "parts = [\"part\"]\n";
        fs::write(self.dir.path().join("recipes/sources.toml"), shipped)?;
        Ok(fs::write(self.dir.path().join("images.toml"), text)?)
    }

    fn images(&self, arguments: &[&str]) -> Result<Built> {
        let at = |name: &str| self.dir.path().join(name);
        let output = Command::new(wharf_binary())
            .arg("images")
            .args(arguments)
            .args(["-o", "json", "--config"])
            .arg(at("wharf.toml"))
            .arg("--recipes")
            .arg(at("recipes"))
            .arg("--sources")
            .arg(at("images.toml"))
            .arg("--cache")
            .arg(at("cache"))
            .env("NO_PROXY", "127.0.0.1")
            .env("no_proxy", "127.0.0.1")
            .output()?;
        Ok(Built {
            succeeded: output.status.success(),
            images: serde_json::from_slice(&output.stdout).unwrap_or_default(),
            text: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    fn build(&self, arguments: &[&str]) -> Result<Built> {
        self.images(&[&["build"], arguments].concat())
    }

    fn recorded(&self) -> String {
        fs::read_to_string(self.dir.path().join("images.recorded.toml")).unwrap_or_default()
    }
}

/// Imports an image whose files and variable tell the version.
fn seed(context: &EngineContext, image: &str, version: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    fs::write(dir.path().join("version"), version)?;
    let mut tar = Command::new("tar");
    let tar = tar
        .args(["--create", "--directory"])
        .arg(dir.path())
        .arg(".");
    let changes = format!("ENV%20STUDIO_VERSION={version}");
    let path = format!("/images/create?fromSrc=-&repo={image}&changes={changes}");
    let request = Request::new("POST", &path).body(Body::Tar(tar.output()?.stdout));
    context.client().send(request)?.ok().map(drop)
}

/// An entry with a registry's image, and a substitute.
fn entry(recipe: &str, image: &str, more: &str) -> String {
    format!(
        "[[{recipe}.from]]\nimage = \"{image}\"\ncontent = \"Studio {{STUDIO_VERSION}}\"\n{more}\n\
         [[{recipe}.from]]\ncontent = \"A substitute\"\nsubstitute = true\n"
    )
}

/// Serves a file to all requests, until the process of the test ends. Returns its URL.
fn serve() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/release/data.txt", listener.local_addr()?);
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let request = BufReader::new(&client).lines().map_while(Result::ok);
            request.take_while(|line| !line.is_empty()).for_each(drop);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", DATA.len());
            let _ = client.write_all(format!("{head}{DATA}").as_bytes());
        }
    });
    Ok(url)
}

fn alternatives(place: &Place) -> Result<()> {
    let host = place.registry.host();
    let one = place.publish("studio", "1", "1")?;
    let image = format!("{host}/studio:1");
    let built = place.build(&["tool"])?;
    let tool = built.image("tool")?;
    ensure!(
        tool["content"] == "Studio 1" && tool["is_new"] == true,
        "{tool}"
    );
    ensure!(tool["source"] == format!("{host}/studio@{one}"), "{tool}");
    let line = format!("tool: Studio 1, from {host}/studio@{one}");
    ensure!(built.text.contains(&line), "{}", built.text);
    let record = format!("\"{image}\" = \"{one}\"\n");
    ensure!(place.recorded() == record, "{}", place.recorded());
    // The image of the recipe between is gone, and its files are in the image.
    let images = place.context.client().get("/images/json")?.to_string();
    ensure!(!images.contains("wharf/tool."), "{images}");
    let shown = place.images(&[])?;
    let row = shown.image("tool")?;
    ensure!(
        row["state"] == "current" && row["content"] == "Studio 1",
        "{row}"
    );
    ensure!(
        !shown.images.to_string().contains("\"part\""),
        "{}",
        shown.images
    );
    place.build(&["part"])?.failed(&["no image \"part\""])?;

    // The tag moves, and the recorded digest stays, also where the image is made again.
    let two = place.publish("studio", "1", "2")?;
    ensure!(place.build(&["tool"])?.image("tool")?["is_new"] == false);
    forget(place.context, "localhost/wharf/tool:1")?;
    forget(place.context, &format!("{host}/studio@{one}"))?;
    let tool = place.build(&["tool"])?;
    ensure!(
        tool.image("tool")?["content"] == "Studio 1",
        "{}",
        tool.text
    );
    // A renewal of a registry that does not answer changes nothing.
    place.registry.set_mode(RegistryMode::Busy);
    place
        .build(&["tool", "--renew"])?
        .failed(&["tool.from, number 1", &image])?;
    ensure!(place.recorded() == record, "{}", place.recorded());
    place.registry.set_mode(RegistryMode::Works);
    let renewed = place.build(&["tool", "--renew"])?;
    ensure!(
        renewed.image("tool")?["content"] == "Studio 2",
        "{}",
        renewed.text
    );
    let moved = format!("{image}: {two} in place of {one}");
    ensure!(renewed.text.contains(&moved), "{}", renewed.text);
    ensure!(place.recorded().contains(&two), "{}", place.recorded());
    Ok(())
}

fn cut_half_way(place: &Place) -> Result<()> {
    place.publish("cut", "1", "3")?;
    place.registry.set_mode(RegistryMode::Cuts);
    let built = place.build(&["cut"])?;
    let cut = built.image("cut")?;
    ensure!(
        cut["content"] == "A substitute" && cut["is_substitute"] == true,
        "{cut}"
    );
    let name = format!("{}/cut:1", place.registry.host());
    ensure!(cut["not_taken"][0]["alternative"] == *name, "{cut}");
    let line = format!("cut: A substitute, a substitute, from {PLAIN}; {name} was not taken: ");
    ensure!(built.text.contains(&line), "{}", built.text);
    let refused = place.build(&["cut", "--original"])?;
    refused.failed(&["cut:1", &name, "it is a substitute"])?;
    place.registry.set_mode(RegistryMode::Works);
    ensure!(place.build(&["cut"])?.image("cut")?["is_new"] == false);
    let original = place.build(&["cut", "--original"])?;
    ensure!(
        original.image("cut")?["content"] == "Studio 3",
        "{}",
        original.text
    );
    Ok(())
}

fn mirror(place: &Place) -> Result<()> {
    let digest = place.publish("studio", "4", "4")?;
    let built = place.build(&["mirrored"])?;
    let mirrored = built.image("mirrored")?;
    ensure!(
        mirrored["source"] == format!("hub.example/studio@{digest}"),
        "{mirrored}"
    );
    ensure!(mirrored["content"] == "Studio 4", "{mirrored}");
    Ok(())
}

fn downloads(place: &Place, url: &str) -> Result<()> {
    let sum: String = Sha256::digest(DATA)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let wrong = "0".repeat(64);
    let entry = |url: &str, sum: &str| {
        format!(
            "[[data.from]]\ncontent = \"Data\"\n[[data.from.download]]\nurl = \"{url}\"\n\
             name = \"data.txt\"\nsha256 = \"{sum}\"\n\
             [[data.from]]\ncontent = \"None\"\nsubstitute = true\n"
        )
    };
    place.sources(&entry(url, &wrong))?;
    let refused = place.build(&["data"])?;
    refused.failed(&["images.toml", "data.from, number 1", "sha256", &wrong, &sum])?;
    // Nothing listens at port 9.
    place.sources(&entry("http://127.0.0.1:9/data.txt", &sum))?;
    let without = place.build(&["data"])?;
    ensure!(
        without.image("data")?["content"] == "None",
        "{}",
        without.text
    );
    place.sources(&entry(url, &sum))?;
    let built = place.build(&["data", "--original"])?;
    ensure!(built.image("data")?["content"] == "Data", "{}", built.text);
    let config = json!({ "Image": "localhost/wharf/data:1", "Cmd": ["/none"] });
    let made = place
        .context
        .ask("POST", "/containers/create", Some(config))?;
    let id = made["Id"].as_str().context("no container")?;
    let path = format!("/containers/{id}/archive?path=/made/downloads/data.txt");
    let archive = place
        .context
        .client()
        .send(Request::new("GET", &path))?
        .ok()?;
    let path = format!("/containers/{id}");
    place.context.ask("DELETE", &path, None)?;
    ensure!(String::from_utf8_lossy(&archive.body).contains(DATA));
    ensure!(
        place
            .dir
            .path()
            .join("cache/downloads")
            .join(&sum)
            .is_file()
    );
    Ok(())
}

/// Removes the images of the test.
fn clean(place: &Place, hosts: &[&str]) -> Result<()> {
    let list = place.context.client().get("/images/json")?;
    let names = |key: &str| {
        let all = list.as_array().cloned().unwrap_or_default().into_iter();
        let names = all.flat_map(|image| image[key].as_array().cloned().unwrap_or_default());
        names
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let own = RECIPES.map(|recipe| format!("localhost/wharf/{recipe}:1"));
    for name in [names("RepoTags"), names("RepoDigests")].concat() {
        let is_ours = name == PLAIN || own.contains(&name);
        if is_ours || hosts.iter().any(|host| name.starts_with(host)) {
            // The digest of an image goes with its last tag.
            let path = format!("/images/{name}?force=true");
            place.context.client().send(Request::new("DELETE", &path))?;
        }
    }
    Ok(())
}

pub fn in_order(context: &EngineContext) -> Result<()> {
    let place = Place::new(context)?;
    let host = place.registry.host();
    // Its connections wait for an answer.
    let slow = TcpListener::bind("127.0.0.1:0")?;
    let pinned = place.publish("lie", "1", "5")?;
    place.publish("lie", "2", "6")?;
    let all = [
        format!("[mirror]\n\"hub.example/\" = \"{host}/\"\n"),
        entry("tool", &format!("{host}/studio:1"), "recipes = [\"part\"]"),
        entry("cut", &format!("{host}/cut:1"), ""),
        entry(
            "lie",
            &format!("{host}/lie:1"),
            &format!("digest = \"{pinned}\""),
        ),
        entry("slow", &format!("{}/studio:1", slow.local_addr()?), ""),
        entry("mirrored", "hub.example/studio:4", ""),
    ];
    place.sources(&all.concat())?;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| place.build(&["slow"]));
        alternatives(&place)?;
        cut_half_way(&place)?;
        mirror(&place)?;
        place.registry.set_mode(RegistryMode::Lies);
        let lied = place.build(&["lie"])?;
        lied.failed(&["images.toml", "lie.from, number 1", &pinned])?;
        place.registry.set_mode(RegistryMode::Works);
        ensure!(place.build(&["lie"])?.image("lie")?["content"] == "Studio 5");
        let waited = waiting.join().map_err(|_| anyhow::anyhow!("a panic"))??;
        let slow = waited.image("slow")?;
        ensure!(slow["content"] == "A substitute", "{slow}");
        let reason = slow["not_taken"][0]["reason"].as_str().unwrap_or_default();
        ensure!(reason.contains("no answer within"), "{slow}");
        anyhow::Ok(())
    })?;
    downloads(&place, &serve()?)?;
    clean(&place, &[&host])
}
