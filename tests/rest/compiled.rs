//! Compiled plugins: those that came with the program, and those that the server keeps.

use crate::check::checked;
use crate::has;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use wharf_testkit::process::{is_root, run};
use wharf_testkit::workspace::{target, wharf_binary};
use wharf_tests::{Ports, Server, docker_node, simulated_node};

const COMPILED: &str = "a plugin was compiled";
/// The number of plugins in the program.
const PLUGINS: usize = 4;

/// An installation of the program, without compiled plugins at first.
struct Installation(TempDir);

impl Installation {
    fn new() -> Self {
        let dir = tempfile::tempdir_in(target()).unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        let installed = Self(dir);
        // A copy could be open for writing in a process that another test starts.
        fs::hard_link(wharf_binary(), installed.program()).unwrap();
        installed
    }

    fn program(&self) -> PathBuf {
        self.0.path().join("bin/wharf")
    }

    fn plugins(&self) -> PathBuf {
        self.0.path().join("lib/wharf/plugins")
    }

    fn precompile(&self) {
        run(Command::new(self.program())
            .args(["plugin", "precompile"])
            .arg(self.plugins()))
        .unwrap();
    }

    fn start(&self) -> Server {
        let node = simulated_node("one", "");
        let settings = format!("{}{node}", Ports::take().settings());
        Server::start_program(&self.program(), &settings)
            .unwrap()
            .checked_at_end()
    }
}

pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The files of compiled plugins.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn file_of(directory: &Path, plugin: &str) -> Option<PathBuf> {
    let is_its = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(plugin) && name.ends_with(".cwasm")
    };
    files(directory).into_iter().find(is_its)
}

#[test]
fn a_start_compiles_no_plugin_that_came_with_the_program() {
    let installed = Installation::new();
    installed.precompile();
    let plugins = files(&installed.plugins());
    assert_eq!(plugins.len(), PLUGINS);
    let changed = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    let before: Vec<_> = plugins.iter().map(changed).collect();
    installed.precompile();
    let after: Vec<_> = plugins.iter().map(changed).collect();
    assert_eq!(before, after, "valid files were written again");

    let server = installed.start();
    let kept = server.data_dir().join("plugins-cache");
    assert!(!server.log().contains(COMPILED), "{}", server.log());
    assert!(files(&kept).is_empty());
}

#[test]
fn a_start_without_them_compiles_the_plugins_and_keeps_them_private_for_checks_too() {
    let installed = Installation::new();
    let mut server = installed.start();
    let cache = server.data_dir().join("plugins-cache");
    for path in files(&cache) {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    for plugin in [
        "driver-docker-",
        "driver-incus-",
        "driver-simulated-",
        "flavors-standard-",
    ] {
        assert!(file_of(&cache, plugin).is_some(), "{plugin}");
    }
    assert_eq!(files(&cache).len(), PLUGINS);
    assert_eq!(server.log().matches(COMPILED).count(), PLUGINS);
    server.terminate().unwrap();
    server.run().unwrap();
    assert_eq!(server.log().matches(COMPILED).count(), PLUGINS);

    let config = fs::read_to_string(server.config_path()).unwrap();
    let docker = file_of(&cache, "driver-docker-").unwrap();
    fs::copy(file_of(&cache, "driver-incus-").unwrap(), &docker).unwrap();
    let node = docker_node(
        "far",
        "unix:///nowhere",
        ["10.99.0.0/16", "198.18.9.0/28"],
        "",
    );
    let config = format!("{config}\n{node}");
    let check = |code: i32, part: &str| {
        let file = server.config_path().with_file_name("other.toml");
        let (status, text) = checked(&installed.program(), &file, &config);
        assert!(status == Some(code) && text.contains(part), "{text}");
    };
    // The file of another driver shows that it is used: that driver needs other settings.
    check(1, "member: required");
    set_mode(&cache, 0o755);
    check(0, "does not answer");
    set_mode(&cache, 0o700);
    fs::remove_file(&docker).unwrap();
    check(0, "does not answer");
    let written = file_of(&cache, "driver-docker-");
    assert_eq!(written, None, "the check wrote a file");
}

#[test]
fn a_file_that_is_damaged_or_that_others_can_change_is_not_used() {
    let installed = Installation::new();
    installed.precompile();
    let plugins = installed.plugins();
    let file = |plugin: &str| file_of(&plugins, plugin).unwrap();
    let compiled = |number: usize, reasons: &[&str]| {
        let server = installed.start();
        let log = server.log();
        assert_eq!(log.matches(COMPILED).count(), number, "{log}");
        for reason in reasons {
            has(&log, reason);
        }
    };

    let damaged = file("driver-docker-");
    let mut content = fs::read(&damaged).unwrap();
    *content.last_mut().unwrap() ^= 1;
    fs::write(&damaged, content).unwrap();
    let short = file("driver-incus-");
    fs::write(&short, b"short").unwrap();
    set_mode(&file("driver-simulated-"), 0o666);
    // The file of another version of the plugin or of Wasmtime has another name.
    let flavors = file("flavors-standard-");
    let other = plugins.join(format!("flavors-standard-{}.cwasm", "0".repeat(64)));
    fs::rename(&flavors, &other).unwrap();
    let shown = |path: &Path| format!("damaged file={}", path.display());
    let reasons = [&*shown(&damaged), &*shown(&short), "mode 0666"];
    compiled(PLUGINS, &reasons);

    set_mode(&file("driver-simulated-"), 0o644);
    installed.precompile();
    assert!(flavors.exists() && !other.exists());
    compiled(0, &[]);
    if is_root() {
        std::os::unix::fs::chown(&flavors, Some(4321), None).unwrap();
        compiled(1, &["belongs to user 4321"]);
    }
}
