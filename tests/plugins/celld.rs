//! The engine of the example driver, started by the test.

use crate::built;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use wharf_testkit::http::{Endpoint, HttpClient, Request};
use wharf_testkit::packages::{self, Need};
use wharf_testkit::workspace::root;
use wharf_tests::{Ports, free_network, succeed, until};

/// The driver's request file.
pub const REQUESTS: &str = "driver-cells.requests.toml";
/// The interpreter that cells share with the node.
const PYTHON: &str = "/usr/bin/python3";
const NEEDS: [Need; 3] = [
    Need {
        program: "python3",
        package: "python3",
        why: "celld and its cells run it",
    },
    Need {
        program: "ip",
        package: "iproute2",
        why: "celld makes networks with it",
    },
    Need {
        program: "mkfs.ext4",
        package: "e2fsprogs",
        why: "celld makes disks with it",
    },
];

/// A running celld. Dropping it removes its cells.
pub struct Celld {
    dir: TempDir,
    process: Child,
}

/// Whether celld can run here. In continuous integration it must.
pub fn is_possible() -> bool {
    if wharf_testkit::process::is_root() {
        return true;
    }
    wharf_testkit::progress::skipped("celld needs root on this machine; its tests did not run");
    assert!(std::env::var_os("CI").is_none());
    false
}

impl Celld {
    /// Starts one with the image `notes`.
    pub fn start() -> Self {
        packages::ensure_unless(&NEEDS, |need| match need.program {
            "python3" => Path::new(PYTHON).exists(),
            program => wharf_testkit::process::find(program).is_some(),
        })
        .unwrap();
        let dir = tempfile::Builder::new().prefix("celld-").tempdir().unwrap();
        let images = dir.path().join("store/images");
        fs::create_dir_all(&images).unwrap();
        let notes = source().join("images/notes");
        succeed(Command::new("cp").arg("-r").arg(notes).arg(&images)).unwrap();
        let process = run(dir.path());
        let celld = Self { dir, process };
        celld.is_up();
        celld
    }

    /// Ends celld with SIGKILL and starts it again. Its cells go on meanwhile.
    pub fn kill_and_start(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.process = run(self.dir.path());
        self.is_up();
    }

    fn is_up(&self) {
        until("celld answers", || Ok(self.client().get("/info").ok())).unwrap();
    }

    fn client(&self) -> HttpClient {
        HttpClient::new(Endpoint::Unix(self.socket()))
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("celld.sock")
    }

    /// The directory of all that it keeps.
    pub fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// The ids of all cells.
    pub fn cells(&self) -> Vec<String> {
        let entries = fs::read_dir(self.store().join("cells")).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        entries.map(|entry| name(entry.unwrap())).collect()
    }

    /// celld's own report on a cell.
    pub fn cell(&self, id: &str) -> Value {
        self.client().get(&format!("/cells/{id}")).unwrap()
    }

    /// The settings of a server with this node, its driver and its request file approved.
    pub fn settings(&self) -> String {
        let plugins = self.plugins();
        let hash = hash(&plugins.join(REQUESTS));
        format!("[plugins]\n\"{REQUESTS}\" = \"{hash}\"\n")
            + &format!(
                "\"driver-cells.wasm\" = \"{}\"\n",
                self::hash(built::driver())
            )
            + &self.node()
    }

    /// Installs the driver and its request file.
    pub fn plugins(&self) -> PathBuf {
        let plugins = self.dir.path().join("plugins");
        fs::create_dir_all(&plugins).unwrap();
        fs::copy(built::driver(), plugins.join("driver-cells.wasm")).unwrap();
        fs::copy(source().join(REQUESTS), plugins.join(REQUESTS)).unwrap();
        plugins
    }

    /// The ports, the flavor and the node of a server.
    pub fn node(&self) -> String {
        let ports = Ports::take().settings();
        let lan = free_network().unwrap();
        format!(
            "{ports}[[flavor]]\nname = \"notes\"\nimage = \"notes\"\nweb_port = 8000\n\
             web_path = \"/health\"\n\
             [[node]]\nname = \"cells\"\ndriver = \"cells\"\nendpoint = \"unix://{}\"\n\
             capacity = {{ n_vcpus = 16, mem_gib = 16, disk_size_gib = 500 }}\n\
             lan_cidr = \"10.{lan}.0.0/16\"\n",
            self.socket().display()
        )
    }
}

impl Drop for Celld {
    fn drop(&mut self) {
        for cell in self.cells() {
            let path = format!("/cells/{cell}");
            if let Err(error) = self.client().send(Request::new("DELETE", &path)) {
                eprintln!("cell {cell} is left: {error:#}");
            }
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            let log = fs::read_to_string(self.dir.path().join("log"));
            eprintln!("{}", log.unwrap_or_default());
        }
    }
}

fn source() -> PathBuf {
    root().join("plugins/example-driver-python")
}

fn run(dir: &Path) -> Child {
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(dir.join("log"))
        .unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
    Command::new(PYTHON)
        .arg(source().join("celld.py"))
        .arg("--root")
        .arg(dir.join("store"))
        .arg("--socket")
        .arg(dir.join("celld.sock"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// The hash of a file, as `sha256sum` computes it and the configuration writes it.
pub fn hash(file: &Path) -> String {
    let line = succeed(Command::new("sha256sum").arg(file)).unwrap();
    format!("sha256:{}", line.split(' ').next().unwrap())
}
