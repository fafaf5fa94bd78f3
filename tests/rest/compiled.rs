//! Compiled plugins: those that came with the program, and those that the server keeps.

use crate::check::checked;
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
        Server::start_program(&self.program(), &settings).unwrap()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
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
    assert_eq!(files(&kept), [PathBuf::new(); 0]);
    server.finish().unwrap();
}

#[test]
fn a_start_without_them_compiles_the_plugins_and_keeps_them_private() {
    let mut server = Installation::new().start();
    let kept = server.data_dir().join("plugins-cache");
    for path in files(&kept) {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    for plugin in [
        "driver-docker-",
        "driver-incus-",
        "driver-simulated-",
        "flavors-standard-",
    ] {
        assert!(file_of(&kept, plugin).is_some(), "{plugin}");
    }
    assert_eq!(files(&kept).len(), PLUGINS);
    assert_eq!(server.log().matches(COMPILED).count(), PLUGINS);
    server.terminate().unwrap();
    server.run().unwrap();
    assert_eq!(server.log().matches(COMPILED).count(), PLUGINS);
    server.finish().unwrap();
}

#[test]
fn a_file_that_is_damaged_or_that_others_can_change_is_not_used() {
    let installed = Installation::new();
    installed.precompile();
    let plugins = installed.plugins();
    let file = file_of(&plugins, "driver-simulated-").unwrap();
    let valid = fs::read(&file).unwrap();
    let compiled = |plugins: usize, why: &str| {
        let server = installed.start();
        let log = server.log();
        assert_eq!(log.matches(COMPILED).count(), plugins, "{log}");
        assert!(log.contains(why), "{why} is not in: {log}");
        server.finish().unwrap();
    };

    let mut damaged = valid.clone();
    *damaged.last_mut().unwrap() ^= 1;
    for content in [&damaged[..], b"short"] {
        fs::write(&file, content).unwrap();
        compiled(1, "a compiled plugin is damaged");
    }
    fs::write(&file, &valid).unwrap();

    // The file of another version of the plugin or of Wasmtime has another name.
    let other = plugins.join(format!("driver-simulated-{}.cwasm", "0".repeat(64)));
    fs::rename(&file, &other).unwrap();
    compiled(1, "plugin=\"driver-simulated\"");
    installed.precompile();
    assert!(file.exists() && !other.exists());

    set_mode(&file, 0o666);
    compiled(1, "mode 0666");
    set_mode(&file, 0o644);
    for directory in [
        &plugins,
        plugins.parent().unwrap(),
        &installed.0.path().join("lib"),
    ] {
        set_mode(directory, 0o775);
        compiled(PLUGINS, "mode 0775");
        set_mode(directory, 0o755);
    }
    if is_root() {
        std::os::unix::fs::chown(&file, Some(4321), None).unwrap();
        compiled(1, "belongs to user 4321");
    }
}

#[test]
fn a_check_uses_the_plugins_of_the_server_if_nobody_else_can_write_them() {
    let installed = Installation::new();
    let server = installed.start();
    let config = fs::read_to_string(server.config_path()).unwrap();
    let cache = server.data_dir().join("plugins-cache");
    let docker = file_of(&cache, "driver-docker-").unwrap();
    fs::copy(file_of(&cache, "driver-incus-").unwrap(), &docker).unwrap();
    let node = docker_node(
        "far",
        "unix:///nowhere",
        ["10.99.0.0/16", "198.18.9.0/28"],
        "",
    );
    let config = format!("{config}\n{node}");
    let check = || {
        let file = server.config_path().with_file_name("other.toml");
        checked(&installed.program(), &file, &config)
    };
    // The file of another driver shows that it is used: that driver needs other settings.
    let other = "member: required";
    let (status, text) = check();
    assert!(status == Some(1) && text.contains(other), "{text}");
    set_mode(&cache, 0o755);
    let (status, text) = check();
    assert!(
        status == Some(0) && text.contains("does not answer"),
        "{text}"
    );

    set_mode(&cache, 0o700);
    fs::remove_file(&docker).unwrap();
    let (status, text) = check();
    assert!(
        status == Some(0) && text.contains("does not answer"),
        "{text}"
    );
    assert_eq!(
        file_of(&cache, "driver-docker-"),
        None,
        "the check wrote a file"
    );
    server.finish().unwrap();
}
