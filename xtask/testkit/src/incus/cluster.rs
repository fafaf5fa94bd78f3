//! The life of a cluster.

use super::member::{Member, PORT};
use super::place::Place;
use super::project::POOL;
use super::{package, remains};
use crate::engine::Lxcfs;
use crate::process::{command, is_root, output, run, succeeds};
use crate::progress;
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The options of a cluster.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory of storage and logs, for one cluster.
    pub dir: PathBuf,
    /// The number of members, at most 9.
    pub members: u8,
    /// The size of each member's storage pool, a sparse file.
    pub disk_gib: u64,
    /// Seconds until the cluster knows that a member is out of reach; Incus takes at least 11.
    pub offline_after_s: u8,
}

/// A running cluster, which starts empty. Dropping it ends it with everything in it.
#[derive(Debug)]
pub struct Cluster {
    place: Place,
    members: Vec<Member>,
    lxcfs: Option<Lxcfs>,
    ended: bool,
    _lock: File,
}

impl Cluster {
    /// Starts a cluster, after ending an earlier run in its directory. Needs root; installs missing
    /// packages.
    pub fn start(options: &Options) -> Result<Self> {
        if !is_root() {
            bail!("a private Incus needs root");
        }
        package::install()?;
        let place = Place::at(&options.dir)?;
        let lock = place.lock()?;
        clear(&place)?;
        place.note()?;
        let mut cluster = Self {
            place,
            members: Vec::new(),
            // Before the daemons, which look for it when they start.
            lxcfs: Lxcfs::share(),
            ended: false,
            _lock: lock,
        };
        cluster.make_network()?;
        for number in 1..=options.members {
            let member = Member::start(&cluster.place, number)?;
            cluster.members.push(member);
            cluster.join(number, options)?;
        }
        let first = cluster.members.first().context("no member")?;
        let threshold = options.offline_after_s.to_string();
        let config = json!({ "config": { "cluster.offline_threshold": threshold } });
        first.ask("PATCH", "/1.0", Some(config))?;
        Ok(cluster)
    }

    /// The members, in their order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// A member, for its pause.
    pub fn member(&mut self, at: usize) -> Result<&mut Member> {
        self.members.get_mut(at).context("no such member")
    }

    /// The certificate of the members.
    pub fn certificate(&self) -> Result<String> {
        let first = self.members.first().context("no member")?;
        let file = first.directory().join("cluster.crt");
        fs::read_to_string(&file).with_context(|| format!("{}", file.display()))
    }

    /// Ends the cluster, and checks that nothing is left.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    /// Ends what killed runs left behind on this machine.
    pub fn end_abandoned() {
        for place in Place::all() {
            // A living run holds the lock.
            let Ok(_lock) = place.lock() else { continue };
            let dir = place.dir.display().to_string();
            progress::note(&format!(
                "Ending what a killed run left: the Incus in {dir}."
            ));
            if let Err(error) = clear(&place) {
                progress::note(&format!("It does not end: {error:#}"));
            }
        }
    }

    fn make_network(&self) -> Result<()> {
        let bridge = self.place.bridge();
        let ip = |arguments: &str| run(command("ip").args(arguments.split_whitespace()));
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!(
            "address add {}/24 dev {bridge}",
            self.place.host(254)
        ))?;
        ip(&format!("link set {bridge} up"))?;
        fs::create_dir_all(self.place.run.join("mounts"))?;
        // Files of mount namespaces need a mount that no other namespace gets.
        let mounts = self.place.run.join("mounts");
        run(command("mount").arg("--bind").arg(&mounts).arg(&mounts))?;
        run(command("mount").arg("--make-private").arg(&mounts))?;
        // A member mounts sysfs anew, which hides the control groups.
        let groups = self.place.run.join("cgroup");
        fs::create_dir_all(&groups)?;
        run(command("mount")
            .args(["--rbind", "--make-rprivate", "/sys/fs/cgroup"])
            .arg(&groups))
    }

    /// Makes the first member a cluster, or joins another one to it.
    fn join(&self, number: u8, options: &Options) -> Result<()> {
        let member = self.members.last().context("no member")?;
        let address = format!("{}:{PORT}", member.address());
        let (name, size) = (member.name(), options.disk_gib);
        let seed = if number == 1 {
            format!(
                "config: {{core.https_address: \"{address}\"}}\n\
                 cluster: {{enabled: true, server_name: {name}}}\n\
                 storage_pools:\n\
                 - {{name: {POOL}, driver: btrfs, config: {{size: {size}GiB}}}}\n"
            )
        } else {
            let first = self.members.first().context("no member")?;
            let mut add = first.inside("incus");
            let token = output(add.args(["cluster", "add", &name, "--quiet"]))?;
            let token = token.lines().last().context("no token")?.trim().to_owned();
            format!(
                "cluster:\n  enabled: true\n  server_name: {name}\n  server_address: \"{address}\"\n  \
                 cluster_token: {token}\n  member_config:\n  \
                 - {{entity: storage-pool, name: {POOL}, key: size, value: {size}GiB}}\n"
            )
        };
        let mut init = member.inside("incus");
        init.args(["admin", "init", "--preseed"]);
        with_input(init, &seed).with_context(|| format!("{name} does not join"))
    }

    fn end(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        // The daemons are children of this process, which must take note of their ends.
        let numbers = 1..=u8::try_from(self.members.len())?;
        for number in numbers {
            remains::end_all(&self.place, number);
        }
        self.members.clear();
        self.lxcfs = None;
        clear(&self.place)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            progress::note(&format!("The private Incus did not end cleanly: {error:#}"));
        }
    }
}

/// Removes everything of a cluster.
fn clear(place: &Place) -> Result<()> {
    for number in 1..=9 {
        remains::end_all(place, number);
        Member::remove(place, number);
    }
    succeeds(command("ip").args(["link", "delete", &place.bridge()]));
    for mount in ["cgroup", "mounts"] {
        let mount = place.run.join(mount);
        succeeds(command("umount").args(["--recursive", "--lazy"]).arg(mount));
    }
    if place.run.is_dir() {
        // The control groups of the whole machine were mounted there.
        if let Some(mount) = mounted_below(&place.run)? {
            bail!("{mount} is still mounted");
        }
        fs::remove_dir_all(&place.run).with_context(|| format!("{}", place.run.display()))?;
    }
    for number in 1..=9 {
        let content = place.content(number);
        if content.is_dir() {
            fs::remove_dir_all(&content).with_context(|| format!("{}", content.display()))?;
        }
        let _ = fs::remove_file(place.log(number));
    }
    Ok(())
}

/// A mount point below a directory.
fn mounted_below(directory: &Path) -> Result<Option<String>> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("/proc/self/mountinfo")?;
    let mut points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let found = points.find(|point| Path::new(point).starts_with(directory));
    Ok(found.map(str::to_owned))
}

/// Runs a program with this input; fails with its stderr unless it succeeds.
fn with_input(mut program: std::process::Command, input: &str) -> Result<()> {
    let mut child = program
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("no input")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    let ended = child.wait_with_output()?;
    if !ended.status.success() {
        bail!(
            "{}: {}",
            ended.status,
            String::from_utf8_lossy(&ended.stderr).trim()
        );
    }
    Ok(())
}
