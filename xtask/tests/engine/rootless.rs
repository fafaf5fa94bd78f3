//! A Podman that runs without root, as an account of its own, and `up` on it.

use crate::up::Up;
use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, getrlimit};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use xtask::engine::PODMAN;
use xtask::http::{Client, Endpoint, Request};
use xtask::packages::{self, Need};
use xtask::process::{run, succeeds, wait_until};
use xtask::workspace;

/// The account, its runtime directory below `/run`, and the directory below Cargo's for `up`.
pub const NAME: &str = "wharf-rootless";

/// Beyond what any Podman is run with.
const NEEDS: [Need; 2] = [
    Need {
        program: "newuidmap",
        package: "uidmap",
        why: "gives a user's containers ids of their own",
    },
    Need {
        program: "slirp4netns",
        package: "slirp4netns",
        why: "connects a user's containers",
    },
];

/// $1: the account; $2: its runtime directory. The device is closed to accounts where no udev has
/// opened it, and stays so outside.
const SERVICE: &str = r#"
mkdir -p /dev/net
mount -t tmpfs tmpfs /dev/net
mknod --mode=0666 /dev/net/tun c 10 200
cd /
exec setpriv --reuid "$1" --regid "$1" --init-groups --reset-env env \
    XDG_RUNTIME_DIR="$2" CONTAINERS_CONF="$2/containers.conf" \
    podman system service --time=0 "unix://$2/podman.sock"
"#;

const ANSWER_LIMIT: Duration = Duration::from_secs(60);
const UP_LIMIT: Duration = Duration::from_secs(300);

pub fn up_works() -> Result<()> {
    packages::ensure(&PODMAN)?;
    packages::ensure(&NEEDS)?;
    let podman = Rootless::start()?;
    let dir = workspace::target().join(NAME);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    let mut check = Up::start(&dir, &["--check", "--engine", &podman.endpoint.to_string()])?;
    let status = check.end(UP_LIMIT)?;
    ensure!(
        status.success(),
        "{status}: {}\n{}",
        check.said(),
        podman.said()
    );
    drop(podman);
    ensure!(!is_there(), "the account is still there");
    Ok(fs::remove_dir_all(&dir)?)
}

/// Ended, with its account and all that is in it, when dropped.
struct Rootless {
    service: Child,
    endpoint: Endpoint,
    log: PathBuf,
}

impl Rootless {
    fn start() -> Result<Self> {
        // A run that was killed leaves it.
        remove_account();
        run(Command::new("useradd").args(["--create-home", "--shell", "/usr/sbin/nologin", NAME]))?;
        let runtime = runtime();
        fs::create_dir_all(&runtime)?;
        // No account may set limits above its own, and Podman would.
        let files = getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 20);
        fs::write(
            runtime.join("containers.conf"),
            format!(
                "[containers]\n\
                 default_ulimits = [\"nofile={files}:{files}\", \"nproc=4096:4096\"]\n\
                 [engine]\n\
                 runtime = \"runc\"\n"
            ),
        )?;
        run(Command::new("chown")
            .args(["--recursive", NAME])
            .arg(&runtime))?;
        let log = workspace::target().join(format!("{NAME}.log"));
        let file = File::create(&log)?;
        let service = Command::new("unshare")
            .args(["--mount", "--propagation", "slave"])
            .args(["sh", "-euc", SERVICE, "sh", NAME])
            .arg(&runtime)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()?;
        let endpoint = Endpoint::Unix(runtime.join("podman.sock"));
        let podman = Self {
            service,
            endpoint,
            log,
        };
        let client = Client::new(podman.endpoint.clone());
        let answers = wait_until(ANSWER_LIMIT, || {
            let ping = Request::new("GET", "/_ping").timeout(Duration::from_secs(2));
            client.send(ping).is_ok_and(|answer| answer.status == 200)
        });
        ensure!(answers, "it does not answer: {}", podman.said());
        let info = client.get("/info").context("what it is")?;
        ensure!(info.get("Rootless") == Some(&true.into()), "it has root");
        Ok(podman)
    }

    fn said(&self) -> String {
        crate::read(&self.log)
    }
}

impl Drop for Rootless {
    fn drop(&mut self) {
        remove_account();
        let _ = self.service.wait();
        let _ = fs::remove_file(&self.log);
    }
}

fn runtime() -> PathBuf {
    Path::new("/run").join(NAME)
}

fn is_there() -> bool {
    succeeds(Command::new("getent").args(["passwd", NAME]))
}

/// With its processes and files.
fn remove_account() {
    if is_there() {
        let mut all = Command::new("setpriv");
        all.args(["--reuid", NAME, "--regid", NAME, "--clear-groups"]);
        all.args(["sh", "-c", "kill -KILL -1"]);
        let gone = wait_until(Duration::from_secs(10), || {
            let _ = all.status();
            succeeds(Command::new("userdel").args(["--remove", NAME]))
        });
        if !gone {
            println!("the account {NAME} could not be removed");
        }
    }
    let _ = fs::remove_dir_all(runtime());
}
