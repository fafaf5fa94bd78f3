//! `cargo xtask up`: starts Wharf with a first instance, from nothing.

use super::account::{self, Account};
use super::admin::Admin;
use super::config::{self, Earlier, Ports};
use super::engines::Engines;
use super::nodes::{self, Nodes};
use super::smoke_test::{self, SmokeTest};
use super::{incus, instructions, machine};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use wharf_testkit::engine::{Allowed, try_lock};
use wharf_testkit::server::Server;
use wharf_testkit::signals::Signals;
use wharf_testkit::{progress, workspace};

/// The file of the log, in the directory of a run.
const LOG: &str = "wharf.log";
/// Lines of the log that are printed when a check fails.
const LAST_LINES: usize = 12;

/// The options of `up`.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Check that everything works, remove it all again, and end with status 0.
    #[arg(long)]
    check: bool,
    /// Use this engine, unix:///path/to/its.sock, instead of a private dockerd. Each engine is a node.
    #[arg(long, value_name = "ENDPOINT")]
    engine: Vec<String>,
    /// Use a private Incus instead of a private dockerd, as root on Debian. It cannot run virtual machines.
    #[arg(long, conflicts_with = "engine")]
    incus: bool,
    /// Support virtual machines too, and start one. Their image takes minutes the first time. Their
    /// addresses are reachable from this machine only.
    #[arg(long)]
    vms: bool,
    /// A private range that instances may reach, such as 10.1.0.0/16; the others are denied. The
    /// machine's name servers are allowed for DNS.
    #[arg(long, value_name = "RANGE")]
    allow: Vec<String>,
    /// The directory of configuration, data and keys [default: .wharf in the checkout].
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
}

/// Starts Wharf, tests it, and waits for a signal to end.
pub(super) fn run(options: &Options) -> Result<()> {
    let signals = Signals::catch()?;
    let engines = if options.incus {
        incus::check(options.vms)?;
        Engines::Incus
    } else {
        Engines::choose(&options.engine)?
    };
    let dir = directory(options, &engines)?;
    // The end of a second run would stop the engine of the first.
    let _lock = try_lock(&dir)?.with_context(|| {
        format!(
            "another `cargo xtask up` runs in {}; --dir DIRECTORY names another directory",
            dir.display()
        )
    })?;
    let result = come_up(options, &engines, &dir, &signals);
    if options.check {
        if result.is_err() {
            progress::note(&end_of(&dir.join(LOG)));
        }
        let removed = fs::remove_dir_all(&dir).with_context(|| format!("{}", dir.display()));
        // Fails if anything else is in there.
        let _ = dir.parent().map(fs::remove_dir);
        if let (Err(error), Err(_)) = (&removed, &result) {
            progress::note(&format!("Cannot remove the check's directory: {error:#}"));
        }
        return result.and(removed);
    }
    result
}

fn come_up(options: &Options, engines: &Engines, dir: &Path, signals: &Signals) -> Result<()> {
    let requirements = nodes::Requirements {
        vms: options.vms,
        check: options.check,
        allowed: Allowed::new(&options.allow)?,
    };
    // Declared before the server, so that on failure the server ends first.
    let mut nodes = Nodes::start(engines, &requirements, dir, signals)?;
    signals.check()?;
    let config = dir.join(config::FILE);
    let (ports, _reserved) = Ports::reserve(options.check, &Earlier::read(dir))?;
    let data = dir.join(config::DATA);
    fs::write(
        &config,
        config::text(
            &data,
            ports,
            machine::Listen::new(options.check),
            nodes.list(),
        ),
    )?;
    let server = Server::start(&config, &dir.join(LOG))?;
    let admin = Admin::of(&data);
    let installation = admin.installation()?;
    nodes.belong_to(&installation)?;
    let account = Account::open(dir, &config, &server)?;
    let footprint = nodes.are_real().then(|| nodes.footprint(&installation));
    let test = SmokeTest {
        client: server.client()?,
        log: server.log(),
        host: nodes.host(),
        account: &account,
        admin: &admin,
        footprint,
        check: options.check,
    };
    let first = test.run(smoke_test::CONTAINER, signals)?;
    if options.vms {
        test.run(smoke_test::VM, signals)?;
    }
    if !options.check {
        let link = account::invite(&config)?;
        let host = nodes.host();
        instructions::print(&server, &account, &link, &config, host, first.as_ref());
        watch_until_interrupted(&server, &mut nodes, signals);
    }
    progress::step("Stopping Wharf");
    server.stop();
    nodes.stop()?;
    progress::step(if options.check {
        "Everything works, and is removed again."
    } else {
        "Stopped."
    });
    Ok(())
}

fn directory(options: &Options, engines: &Engines) -> Result<PathBuf> {
    let base = options
        .dir
        .clone()
        .unwrap_or_else(|| workspace::root().join(".wharf"));
    // A check must not disturb the user's own run.
    let dir = if options.check {
        base.join(format!("check-{}", std::process::id()))
    } else {
        engines.directory(&base)
    };
    let writable = fs::create_dir_all(&dir).and_then(|()| tempfile::tempfile_in(&dir).map(drop));
    writable.with_context(|| {
        format!(
            "cannot write to {}; --dir DIRECTORY names another directory",
            dir.display()
        )
    })?;
    Ok(dir.canonicalize()?)
}

/// The end of the log, which a failed check prints before it removes the file.
fn end_of(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    // Each request of the check itself has a line.
    let lines = text.lines().rev();
    let lines = lines.filter(|line| !line.contains("wharf::request"));
    let lines: Vec<_> = lines.take(LAST_LINES).collect();
    let lines: Vec<_> = lines.into_iter().rev().collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("The end of Wharf's log:\n{}", lines.join("\n"))
    }
}

fn watch_until_interrupted(server: &Server, nodes: &mut Nodes, signals: &Signals) {
    loop {
        if signals.wait(std::time::Duration::from_millis(500)) {
            return;
        }
        nodes.watch();
        if let Some(status) = server.ended() {
            progress::step(&format!("Wharf has ended ({status}); see {}", server.log()));
            return;
        }
    }
}
