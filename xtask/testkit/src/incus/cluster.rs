//! A cluster, and the steps of its life that are its own.

use super::member::{Member, PORT};
use super::place::NUMBERS;
use super::project::POOL;
use super::{package, remains};
use crate::engine::{
    Allowed, Engine, GRACE_S, Layout, NodeRules, Note, Private, make_simple, needs_root,
    run_with_input, unmount_all,
};
use crate::process::{command, output, run, succeeds, wait_until};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;
use wharf_subnets::{Ipv4Net, overlap, routes};

/// From the end of a member's processes to that of its mounts.
const UNMOUNT_LIMIT: Duration = Duration::from_secs(20);

/// The options of a cluster.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
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
pub type Cluster = Private<Members>;

/// The members of a cluster.
#[derive(Debug)]
pub struct Members {
    layout: Layout,
    options: ClusterOptions,
    list: Vec<Member>,
}

impl Cluster {
    /// Starts a cluster, after ending an earlier run in its directory. Needs root; installs missing
    /// packages.
    pub fn start(options: &ClusterOptions) -> Result<Self> {
        needs_root()?;
        package::install()?;
        let layout = Layout::at(&options.dir, "wharf-incus-")?;
        let note = Note {
            kind: "Incus".to_owned(),
            disk_gib: Some(options.disk_gib),
            disposable: options.disposable,
        };
        let members = Members {
            layout: layout.clone(),
            options: options.clone(),
            list: Vec::new(),
        };
        Self::begin(layout, &note, members)
    }

    /// See [`crate::engine::end_abandoned`].
    pub fn end_abandoned() {
        crate::engine::end_abandoned(None);
    }

    /// The members, in their order.
    pub fn members(&self) -> &[Member] {
        &self.engine.list
    }

    /// A member, for its pause.
    pub fn member(&mut self, at: usize) -> Result<&mut Member> {
        self.engine.list.get_mut(at).context("no such member")
    }

    /// The first member.
    pub fn first(&self) -> Result<&Member> {
        self.engine.first()
    }

    /// The private destinations that instances may reach, if they reach anything outside.
    pub(super) fn outside(&self) -> Option<&Allowed> {
        self.engine.options.outside.as_ref()
    }

    /// The certificate of the members.
    pub fn certificate(&self) -> Result<String> {
        let file = self.first()?.directory().join("cluster.crt");
        fs::read_to_string(&file).with_context(|| format!("{}", file.display()))
    }
}

impl Members {
    /// Members of a killed run, which are only to be ended.
    pub(crate) fn of_killed_run(layout: &Layout) -> Self {
        Self {
            layout: layout.clone(),
            options: ClusterOptions {
                dir: layout.dir.clone(),
                members: 0,
                disk_gib: 0,
                offline_after_s: 0,
                disposable: true,
                outside: None,
            },
            list: Vec::new(),
        }
    }

    fn first(&self) -> Result<&Member> {
        self.list.first().context("no member")
    }

    fn make_network(&self) -> Result<()> {
        let layout = &self.layout;
        let network = Ipv4Net::new(layout.host(0), 24)?;
        if let Some(taken) = routes().iter().find(|at| overlap(&at.subnet, &network)) {
            bail!(
                "{network}, the network of the Incus in {}, overlaps with {}; another directory gives \
                 another network",
                layout.dir.display(),
                taken.owner
            );
        }
        let (bridge, router) = (layout.bridge(), layout.host(254));
        let ip = |arguments: &str| run(command("ip").args(arguments.split_whitespace()));
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("address add {router}/24 dev {bridge}"))?;
        ip(&format!("link set {bridge} up"))?;
        // A member mounts sysfs anew, which hides the control groups.
        let groups = layout.run.join("cgroup");
        fs::create_dir_all(&groups)?;
        run(command("mount")
            .args(["--rbind", "--make-rprivate", "/sys/fs/cgroup"])
            .arg(&groups))
    }

    /// Makes the first member a cluster, or joins another one to it.
    fn join(&self, member: &Member) -> Result<()> {
        let address = format!("{}:{PORT}", member.address());
        let name = member.name();
        let (key, value) = member.pool(self.options.disk_gib);
        let seed = match self.list.first() {
            None => format!(
                "config: {{core.https_address: \"{address}\"}}\n\
                 cluster: {{enabled: true, server_name: {name}}}\n\
                 storage_pools:\n\
                 - {{name: {POOL}, driver: btrfs, config: {{{key}: {value}}}}}\n"
            ),
            Some(first) => {
                let mut add = first.inside("incus");
                let token = output(add.args(["cluster", "add", &name, "--quiet"]))?;
                let token = token.lines().last().context("no token")?.trim();
                format!(
                    "cluster:\n  enabled: true\n  server_name: {name}\n  server_address: \"{address}\"\n  \
                     cluster_token: {token}\n  member_config:\n  \
                     - {{entity: storage-pool, name: {POOL}, key: {key}, value: {value}}}\n"
                )
            }
        };
        let mut init = member.inside("incus");
        init.args(["admin", "init", "--preseed"]);
        run_with_input(&mut init, &seed).with_context(|| format!("{name} does not join"))
    }

    /// Whether a loop device has a file of a member's storage.
    fn has_disks(&self) -> bool {
        let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let files = devices.filter_map(|device| {
            let file = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
            Some(PathBuf::from(file.trim()))
        });
        let mut files = files.filter(|file| file.extension().is_some_and(|end| end == "img"));
        let Layout { run, dir, .. } = &self.layout;
        files.any(|file| file.starts_with(run) || file.starts_with(dir))
    }
}

impl Engine for Members {
    fn end_earlier(&mut self) -> Result<()> {
        self.clear()
    }

    fn rules(&self) -> Result<Option<NodeRules>> {
        let outside = self.options.outside.as_ref();
        outside
            .map(|allowed| NodeRules::for_private_engine(&self.layout.id, allowed))
            .transpose()
    }

    fn start(&mut self) -> Result<()> {
        let is_new = self.options.disposable || !self.layout.is_complete()?;
        if is_new {
            self.layout.remove_content()?;
        }
        self.make_network()?;
        for number in 1..=self.options.members {
            if is_new {
                let (disk, at) = (self.layout.pool_disk(number), self.layout.pool(number));
                fs::create_dir_all(&at)?;
                make_simple(&disk, self.options.disk_gib, &at)?;
            }
            let mut member = Member::start(&self.layout, number)?;
            if is_new {
                member.await_answer()?;
                self.join(&member)?;
            }
            self.list.push(member);
        }
        for member in &mut self.list {
            member.await_answer()?;
        }
        let threshold = self.options.offline_after_s.to_string();
        let config = json!({ "config": { "cluster.offline_threshold": threshold } });
        self.first()?.ask("PATCH", "/1.0", Some(config))?;
        self.layout.complete()
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.list.iter_mut().find_map(Member::ended)
    }

    fn revive(&mut self) -> Result<()> {
        self.list.iter_mut().try_for_each(Member::revive)
    }

    /// Stops the instances of all projects.
    fn stop_instances(&mut self) -> Result<()> {
        if self.options.disposable || self.list.is_empty() {
            return Ok(());
        }
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

    fn clear(&mut self) -> Result<()> {
        for number in NUMBERS {
            remains::end_all(&self.layout.mounts(number));
        }
        // The daemons are children of this process, which takes note of their ends.
        self.list.clear();
        unmount_all(&self.layout.run)?;
        for number in NUMBERS {
            succeeds(command("ip").args(["netns", "delete", &self.layout.namespace(number)]));
            succeeds(command("ip").args(["link", "delete", &self.layout.link(number)]));
        }
        succeeds(command("ip").args(["link", "delete", &self.layout.bridge()]));
        // A file system that is still mounted must not be mounted from its file a second time.
        if !wait_until(UNMOUNT_LIMIT, || !self.has_disks()) {
            bail!(
                "the disks below {} are still in use",
                self.layout.dir.display()
            );
        }
        Ok(())
    }
}
