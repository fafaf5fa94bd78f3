//! Moves of an instance between two dockerds that know nothing of each other, and its backups.

use crate::backups;
use crate::context::EngineContext;
use crate::grow::{FILL, LIST, host_key, same};
use crate::lab::{Lab, OFTEN, inside, patient, text, uuid};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use wharf_tests::{Api, KeyPair, Login, Ports, Server, eventually, small, until};

pub(crate) const NAMES: [&str; 2] = ["one", "two"];
const NAME: &str = "moving";
const OWNER: &str = "ann@example.com";
/// The deadline of a move on a busy machine, with copies that break off.
pub(crate) const DEADLINE: Duration = Duration::from_secs(400);
/// RAM, half of which is shared memory.
pub(crate) const MEM_GIB: u32 = 2;
/// More than the instance's disk.
pub(crate) const MUCH: &str = "fallocate -l 11G /root/much";

/// Two engines, and a server with both.
pub(crate) struct Apart {
    pub engines: [EngineContext; 2],
    pub server: Server,
    pub api: Api,
    pub key: KeyPair,
    pub id: String,
}

pub fn between_engines(context: &EngineContext) -> Result<()> {
    if !context.grows_disks() {
        println!("SKIPPED: this kernel has no btrfs, so the engines cannot limit disks");
        return Ok(());
    }
    let engines = [context.another("moves-1")?, context.another("moves-2")?];
    let nodes = [engines[0].node(NAMES[0])?, engines[1].node(NAMES[1])?].concat();
    let ports = Ports::take().settings();
    let buckets = backups::SETTINGS;
    let server = Server::start(&format!("{}{ports}{buckets}{nodes}", patient(OFTEN)))?;
    let api = server.user(OWNER)?;
    let key = KeyPair::new()?;
    let mut body = small("container");
    body["name"] = json!(NAME);
    body["public_key"] = json!(key.public);
    body["mem_gib"] = json!(MEM_GIB);
    let made = api.create(&body)?.expect(201)?;
    let mut apart = Apart {
        engines,
        server,
        api,
        key,
        id: uuid(&made).to_owned(),
    };
    apart.api.wait_for(&apart.id, "running")?;
    apart.tour()?;
    backups::tour(&mut apart)?;
    let Apart {
        engines, server, ..
    } = apart;
    for engine in &engines {
        engine.gone(&made)?;
    }
    server.finish()?;
    let stopped = engines.map(EngineContext::stop);
    stopped.into_iter().collect()
}

impl Apart {
    fn tour(&mut self) -> Result<()> {
        self.root(FILL)?;
        let listed = self.root(LIST)?;
        let first = self.now()?;
        let key = until("SSH answers", || Ok(host_key(&first).ok()))?;
        let whole = |apart: &Self, what: &str| -> Result<()> {
            let is_whole = apart.is_whole(&listed, &key);
            is_whole.with_context(|| format!("after {what}"))?;
            println!("{what}: nothing is lost");
            Ok(())
        };

        // A stopped one.
        let from = self.place()?;
        self.api.act(&self.id, "stop")?.expect(200)?;
        self.api.wait_for(&self.id, "exited")?;
        let began = Instant::now();
        let begun = self.begin(NAMES[1 - from])?;
        ensure!(begun.contains("its content is copied"), "{begun}");
        self.ended("moved", 1)?;
        println!("300 MiB moved in {:.1?}", began.elapsed());
        let moved = self.now()?;
        ensure!(text(&moved["state"]) == "exited", "{moved}");
        ensure!(self.place()? == 1 - from, "it has not moved");
        for same in ["name", "wan_ssh_port", "original_service_password"] {
            ensure!(moved[same] == first[same], "{same}: {first} {moved}");
        }
        ensure!(moved["lan_ipv4"] != first["lan_ipv4"], "{moved}");
        self.api.act(&self.id, "restart")?.expect(200)?;
        whole(self, "the move of a stopped instance")?;

        // A running one, with its owner's consent.
        let refused = self.server.cli(&["move", NAME, NAMES[from]]);
        let refused = refused.err().context("moved without consent")?.to_string();
        ensure!(refused.contains("its owner does not let it"), "{refused}");
        self.server.cli(&["user", "allow-moves", OWNER])?;
        self.begin(NAMES[from])?;
        self.is_copied(from)?;
        self.server.kill()?;
        ensure!(self.has_part(from)?, "the copy ended before the kill");
        self.server.run()?;
        self.api = self.server.again(&self.api);
        self.ended("moved", 2)?;
        ensure!(self.place()? == from, "it has not moved");
        whole(self, "kill -9 of the server")?;

        // A move that fails by it leaves the instance where it was.
        for of_new in [true, false] {
            let (from, ends) = (self.place()?, self.ends()?);
            self.begin(NAMES[1 - from])?;
            self.is_copied(1 - from)?;
            let (killed, of) = if of_new {
                (1 - from, "new")
            } else {
                (from, "old")
            };
            self.engines[killed].crash(|| Ok(()))?;
            eventually("the move ends", DEADLINE, || {
                Ok((self.ends()? > ends).then_some(()))
            })?;
            whole(self, &format!("kill -9 of the {of} node's dockerd"))?;
        }

        // A drain.
        let from = self.place()?;
        eventually("the drain ends", DEADLINE, || {
            let left = self.server.cli(&["node", "drain", NAMES[from]])?;
            Ok(left.contains("instances left: 0").then_some(()))
        })?;
        ensure!(self.place()? == 1 - from, "it has not moved");
        whole(self, "a drain")
    }

    pub fn now(&self) -> Result<Value> {
        self.api.instance(&self.id)?.expect(200)
    }

    /// Runs a script as root, in a login with the key.
    pub fn root(&self, script: &str) -> Result<String> {
        let script = format!("sudo bash -c '{}'", script.replace('\'', r"'\''"));
        Login::Key(&self.key).output(&self.now()?, &script)
    }

    /// Begins a move, once the nodes are in reach and an earlier change has ended.
    fn begin(&self, node: &str) -> Result<String> {
        until("a move begins", || {
            match self.server.cli(&["move", NAME, node]) {
                Ok(begun) => Ok(Some(begun)),
                Err(error) => {
                    let said = error.to_string();
                    let waits = ["not in reach", "change under way", "changed meanwhile"];
                    if waits.iter().any(|words| said.contains(words)) {
                        Ok(None)
                    } else {
                        Err(error)
                    }
                }
            }
        })
    }

    fn events(&self) -> Result<Vec<String>> {
        let path = format!("/api/event/?after=0&limit=500&instance={}", self.id);
        let events = self.api.get(&path)?.expect(200)?;
        let events = events.as_array().context("events")?.iter();
        Ok(events
            .map(|event| text(&event["type"]).to_owned())
            .collect())
    }

    /// The number of moves that have ended.
    fn ends(&self) -> Result<usize> {
        let all = self.events()?;
        let ends = all.iter().map(String::as_str);
        Ok(ends
            .filter(|kind| matches!(*kind, "moved" | "move-failed"))
            .count())
    }

    /// Waits until the instance has this number of events of a kind.
    fn ended(&self, kind: &str, times: usize) -> Result<()> {
        eventually(&format!("{times} events {kind}"), DEADLINE, || {
            let all = self.events()?;
            let seen = all.iter().filter(|event| *event == kind).count();
            Ok((seen == times).then_some(()))
        })
    }

    /// The names of the instance's containers on an engine.
    fn containers(&self, engine: usize) -> Result<Vec<String>> {
        let found = self.engines[engine].containers_of(&json!({ "uuid": self.id }))?;
        Ok(found.iter().map(|one| one["Names"].to_string()).collect())
    }

    fn has_part(&self, engine: usize) -> Result<bool> {
        let names = self.containers(engine)?;
        Ok(names.iter().any(|name| name.contains("-part\"")))
    }

    /// Waits until a copy is under way.
    fn is_copied(&self, to: usize) -> Result<()> {
        eventually("a copy is under way", DEADLINE, || {
            let events = self.events()?;
            let last = events.iter().rfind(|kind| kind.starts_with("mov"));
            ensure!(
                last.is_some_and(|kind| kind == "moving"),
                "ended unseen: {events:?}"
            );
            Ok(self.has_part(to)?.then_some(()))
        })
    }

    /// The engine with the only container.
    pub fn place(&self) -> Result<usize> {
        eventually("one engine has the instance", DEADLINE, || {
            let all = [self.containers(0)?, self.containers(1)?];
            let own = format!("[\"/wharf-{}\"]", self.id);
            match all.each_ref().map(Vec::as_slice) {
                [[one], []] if *one == own => Ok(Some(0)),
                [[], [one]] if *one == own => Ok(Some(1)),
                [[], []] => bail!("it is gone"),
                _ => Ok(None),
            }
        })
    }

    /// Checks that the instance runs once, with all content, its own size, and both logins.
    fn is_whole(&self, listed: &str, key: &str) -> Result<()> {
        let place = self.place()?;
        eventually("it runs", DEADLINE, || {
            let state = self.now()?["state"].clone();
            ensure!(state != "error", "{:?}", self.events()?);
            Ok((state == "running").then_some(()))
        })?;
        let now = self.now()?;
        Login::Key(&self.key).wait_for_login(&now)?;
        ensure!(inside(&now, "id -un")? == "user");
        ensure!(host_key(&now)? == key, "another host key");
        same(listed, &self.root(LIST)?)?;
        self.engines[place].has_size(&now, (1, MEM_GIB))?;
        let much = self.root(MUCH);
        self.root("rm -f /root/much")?;
        ensure!(much.is_err(), "11 GiB fit on a disk of 10");
        ensure!(self.place()? == place, "it has moved again");
        Ok(())
    }
}
