//! The life of a cluster.

use super::member::{Member, PORT};
use super::place::{Place, abandoned};
use super::project::POOL;
use super::{package, remains};
use crate::engine::{Allowed, GRACE_S, Lxcfs, NodeRules};
use crate::process::{Shield, command, is_root, output, run, succeeds, wait_until};
use crate::progress;
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use wharf_subnets::{Ipv4Net, overlap, routes};

/// From the end of a member's processes to that of its mounts.
const UNMOUNT_LIMIT: Duration = Duration::from_secs(20);

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
    /// Whether the cluster starts empty and removes its storage at the end.
    pub disposable: bool,
    /// Private destinations that instances may reach beside the internet. Without it, they reach nothing
    /// outside the cluster.
    pub outside: Option<Allowed>,
}

/// A running cluster. Dropping it ends it with its instances.
#[derive(Debug)]
pub struct Cluster {
    place: Place,
    disposable: bool,
    outside: Option<Allowed>,
    members: Vec<Member>,
    rules: Option<NodeRules>,
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
        let is_new = options.disposable || !place.is_complete()?;
        clear(&place, is_new)?;
        place.note(options.disposable)?;
        let mut cluster = Self {
            place,
            disposable: options.disposable,
            outside: options.outside.clone(),
            members: Vec::new(),
            rules: None,
            // Before the daemons, which look for it when they start.
            lxcfs: Lxcfs::share(),
            ended: false,
            _lock: lock,
        };
        if let Some(allowed) = &options.outside {
            let rules = NodeRules::for_private_engine(&cluster.place.id, allowed)?;
            cluster.rules = Some(rules);
        }
        cluster.make_network()?;
        for number in 1..=options.members {
            let member = Member::start(&cluster.place, number)?;
            cluster.members.push(member);
            if is_new {
                cluster.member(usize::from(number) - 1)?.await_answer()?;
                cluster.join(number, options)?;
            }
        }
        for member in &mut cluster.members {
            member.await_answer()?;
        }
        let first = cluster.first()?;
        let threshold = options.offline_after_s.to_string();
        let config = json!({ "config": { "cluster.offline_threshold": threshold } });
        first.ask("PATCH", "/1.0", Some(config))?;
        cluster.place.complete()?;
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

    /// The first member.
    pub fn first(&self) -> Result<&Member> {
        self.members.first().context("no member")
    }

    /// The private destinations that instances may reach, if they reach anything outside.
    pub(super) fn outside(&self) -> Option<&Allowed> {
        self.outside.as_ref()
    }

    /// The exit status of a member's process that has ended by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.members.iter_mut().find_map(Member::ended)
    }

    /// Starts processes again that have ended by themselves. Instances went on.
    pub fn revive(&mut self) -> Result<()> {
        let ended = self.members.iter_mut();
        for member in ended.filter_map(|member| member.ended().map(|_| member)) {
            member.pause();
            member.resume()?;
        }
        Ok(())
    }

    /// The certificate of the members.
    pub fn certificate(&self) -> Result<String> {
        let first = self.first()?;
        let file = first.directory().join("cluster.crt");
        fs::read_to_string(&file).with_context(|| format!("{}", file.display()))
    }

    /// Ends the cluster, and checks that nothing is left.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    /// Ends what killed runs left behind on this machine.
    pub fn end_abandoned() {
        for found in abandoned() {
            let dir = found.place.dir.display().to_string();
            progress::note(&format!(
                "Ending what a killed run left: the Incus in {dir}."
            ));
            let rules = NodeRules::of_killed_run(&found.place.id);
            let ended = clear(&found.place, found.disposable).and_then(|()| rules.remove());
            if let Err(error) = ended {
                progress::note(&format!("It does not end: {error:#}"));
            }
            Lxcfs::end_unused();
        }
    }

    fn make_network(&self) -> Result<()> {
        let bridge = self.place.bridge();
        let network = Ipv4Net::new(self.place.host(0), 24)?;
        if let Some(taken) = routes().iter().find(|at| overlap(&at.subnet, &network)) {
            bail!(
                "{network}, the network of the Incus in {}, overlaps with {}; another directory gives \
                 another network",
                self.place.dir.display(),
                taken.owner
            );
        }
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
            let first = self.first()?;
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
        let _shield = Shield::raise();
        if !self.disposable
            && !self.members.is_empty()
            && let Err(error) = self.stop_instances()
        {
            progress::note(&format!(
                "Killing instances of Incus, which did not stop: {error:#}"
            ));
        }
        // The daemons are children of this process, which must take note of their ends.
        let numbers = 1..=u8::try_from(self.members.len())?;
        for number in numbers {
            remains::end_all(&self.place, number);
        }
        self.members.clear();
        self.lxcfs = None;
        clear(&self.place, self.disposable)?;
        self.rules.take().map_or(Ok(()), |rules| rules.remove())
    }

    /// Stops the instances of all projects.
    fn stop_instances(&mut self) -> Result<()> {
        self.revive()?;
        let first = self.first()?;
        let projects = first.ask("GET", "/1.0/projects", None)?;
        let paths = projects.as_array().into_iter().flatten();
        for name in paths.filter_map(|path| path.as_str()?.rsplit('/').next()) {
            let stop = json!({ "state": { "action": "stop", "timeout": GRACE_S } });
            let path = format!("/1.0/instances?project={name}");
            first.ask("PUT", &path, Some(stop))?;
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            progress::note(&format!("The private Incus did not end cleanly: {error:#}"));
        }
    }
}

/// Ends everything of a cluster on the machine.
fn clear(place: &Place, with_content: bool) -> Result<()> {
    for number in 1..=9 {
        remains::end_all(place, number);
        Member::remove(place, number);
    }
    succeeds(command("ip").args(["link", "delete", &place.bridge()]));
    for mount in ["cgroup", "mounts"] {
        let mount = place.run.join(mount);
        succeeds(command("umount").args(["--recursive", "--lazy"]).arg(mount));
    }
    // A file system that is still mounted must not be mounted from its file a second time.
    if !wait_until(UNMOUNT_LIMIT, || !has_disks(place)) {
        bail!("the disks below {} are still in use", place.dir.display());
    }
    if place.run.is_dir() {
        // The control groups of the whole machine were mounted there.
        if let Some(mount) = mounted_below(&place.run)? {
            bail!("{mount} is still mounted");
        }
        fs::remove_dir_all(&place.run).with_context(|| format!("{}", place.run.display()))?;
    }
    match with_content {
        true => place.remove_content(),
        false => Ok(()),
    }
}

/// Whether a loop device has a file of a member's storage.
fn has_disks(place: &Place) -> bool {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let files = devices.filter_map(|device| {
        let file = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        Some(PathBuf::from(file.trim()))
    });
    let mut files = files.filter(|file| file.extension().is_some_and(|end| end == "img"));
    files.any(|file| file.starts_with(&place.run) || file.starts_with(&place.dir))
}

/// The size of the storage of the first member of the cluster in `dir`, if it exists.
pub fn disk_gib(dir: &Path) -> Option<u64> {
    let file = dir.join("m1/disks").join(format!("{POOL}.img"));
    Some(fs::metadata(file).ok()?.len() >> 30)
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
