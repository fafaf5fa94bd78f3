//! `up` on a rootless Podman of a new account.

use crate::traces;
use crate::up::Up;
use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, getrlimit};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wharf_testkit::engine::{PODMAN, userns};
use wharf_testkit::http::{Endpoint, HttpClient, Request};
use wharf_testkit::packages::{self, Need};
use wharf_testkit::process::{run, succeeds, wait_until};
use wharf_testkit::workspace;

/// The name of the account, of its directory below `/run`, and of the directory of `up`.
pub const NAME: &str = "wharf-rootless";

/// The programs of a rootless Podman, besides those of any Podman.
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

/// $1: the account; $2: its runtime directory. Without udev, only root has access to the device; the mount
/// makes a device for this account only.
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

pub fn up_works(dir: &Path) -> Result<()> {
    packages::ensure(&PODMAN)?;
    packages::ensure(&NEEDS)?;
    let podman = Rootless::start()?;
    let mut check = Up::start(dir, &["--check", "--engine", &podman.endpoint.to_string()])?;
    let status = check.end(UP_LIMIT)?;
    ensure!(
        status.success(),
        "{status}: {}\n{}",
        check.output(),
        podman.log()
    );
    drop(podman);
    ensure!(!is_there(), "the account is still there");
    // The account, and its directory below `/run`.
    traces::none(&[NAME.to_owned()])
}

/// A rootless Podman. Dropping it removes the account with its processes and files.
struct Rootless {
    service: Child,
    endpoint: Endpoint,
    log: PathBuf,
}

impl Rootless {
    fn start() -> Result<Self> {
        // A killed run leaves the account.
        remove_account();
        run(Command::new("useradd")
            .args(["--create-home", "--shell", "/usr/sbin/nologin"])
            .args(["-K", "SUB_UID_COUNT=0", "-K", "SUB_GID_COUNT=0", NAME]))?;
        userns::add_ranges(NAME, userns::WHOLE_SYSTEM)?;
        let runtime = runtime();
        fs::create_dir_all(&runtime)?;
        // Podman would set limits above those of the account.
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
        let client = HttpClient::new(podman.endpoint.clone());
        let answers = wait_until(ANSWER_LIMIT, || {
            let ping = Request::new("GET", "/_ping").timeout(Duration::from_secs(2));
            client
                .send(ping)
                .is_ok_and(|response| response.status == 200)
        });
        ensure!(answers, "Podman does not respond: {}", podman.log());
        let info = client.get("/info").context("/info")?;
        ensure!(
            info.get("Rootless") == Some(&true.into()),
            "Podman is not rootless"
        );
        Ok(podman)
    }

    fn log(&self) -> String {
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

/// Removes the account with its processes and files.
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
