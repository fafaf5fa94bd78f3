//! The package of `cargo xtask dist`, installed in a root file system of Debian without anything else.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wharf_testkit::child::KilledOnDrop;
use wharf_testkit::packages::{self, Need};
use wharf_testkit::process::{is_root, output, run};
use wharf_testkit::workspace::{root, target};
use wharf_tests::{Api, simulated_node};

const NEEDS: [Need; 1] = [Need {
    program: "mmdebstrap",
    package: "mmdebstrap",
    why: "makes a clean Debian",
}];

/// Makes a Debian of essential packages, of the machine's release.
fn debian(at: &Path) {
    packages::ensure(&NEEDS).unwrap();
    let platform = wharf_images::platform().unwrap();
    let suite = platform.split('-').next().unwrap();
    run(Command::new("mmdebstrap")
        .args(["--quiet", "--variant=minbase"])
        .args(wharf_images::apt_options())
        .arg(suite)
        .arg(at)
        .args(wharf_images::apt_sources(suite)))
    .unwrap();
}

fn package() -> PathBuf {
    let mut dist = Command::new(target().join("release/wharf-dist"));
    let made = output(dist.env("WHARF_WORKSPACE", root())).unwrap();
    let mut lines = made.lines().map(PathBuf::from);
    assert!(lines.next().unwrap().to_string_lossy().ends_with(".tar.gz"));
    lines.next().unwrap()
}

fn inside(debian: &Path, command: &[&str]) -> Command {
    let mut chroot = Command::new("chroot");
    chroot.arg(debian).args(command).env("LC_ALL", "C.UTF-8");
    chroot
}

#[test]
fn the_package_installs_serves_and_is_removed_in_a_clean_debian() {
    if !is_root() {
        assert!(std::env::var_os("CI").is_none(), "not root");
        wharf_testkit::progress::skipped("a clean Debian needs root");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let debian_root = directory.path().join("debian");
    debian(&debian_root);
    let package = package();
    fs::copy(&package, debian_root.join("wharf.deb")).unwrap();
    let said = output(&mut inside(
        &debian_root,
        &["dpkg", "--install", "/wharf.deb"],
    ))
    .unwrap();
    assert!(said.contains("adapt /etc/wharf/wharf.toml"), "{said}");

    let version = output(&mut inside(&debian_root, &["wharf", "--version"])).unwrap();
    assert!(version.starts_with("wharf "), "{version}");
    for file in [
        "usr/share/man/man1/wharf.1.gz",
        "usr/share/man/man1/wharf-create.1.gz",
        "usr/share/bash-completion/completions/wharf",
        "usr/share/wharf/images/base/Containerfile",
        "usr/share/doc/wharf/docs/operating.md",
    ] {
        assert!(debian_root.join(file).is_file(), "{file}");
    }
    let compiled = fs::read_dir(debian_root.join("usr/lib/wharf/plugins")).unwrap();
    assert_eq!(compiled.count(), 4);
    let completions = "usr/share/bash-completion/completions/wharf";
    let completions = fs::read_to_string(debian_root.join(completions)).unwrap();
    assert!(!completions.contains("target/dist"), "{completions}");
    let unit = debian_root.join("usr/lib/systemd/system/wharf.service");
    let unit = fs::read_to_string(unit).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/wharf serve"), "{unit}");

    serves(&debian_root);

    let dpkg = |action: &str| inside(&debian_root, &["dpkg", action, "wharf"]);
    run(&mut dpkg("--remove")).unwrap();
    assert!(!debian_root.join("usr/bin/wharf").exists());
    assert!(debian_root.join("etc/wharf/wharf.toml").exists());
    let said = output(&mut dpkg("--purge")).unwrap();
    assert!(said.contains("/var/lib/wharf is kept"), "{said}");
    assert!(!debian_root.join("etc/wharf/wharf.toml").exists());
}

/// The installed program serves the package's own configuration, with a node of simulated instances.
fn serves(debian: &Path) {
    let file = debian.join("etc/wharf/wharf.toml");
    let shipped = fs::read_to_string(&file).unwrap();
    let (general, _) = shipped.split_once("[[node]]").unwrap();
    let general = general.replace("127.0.0.1:8080", "127.0.0.1:0");
    let settings = format!("{general}{}", simulated_node("one", ""));
    fs::write(debian.join("etc/wharf/test.toml"), settings).unwrap();
    let serve = ["wharf", "serve", "--config", "/etc/wharf/test.toml"];
    let log = fs::File::create(debian.join("log")).unwrap();
    let mut serve = inside(debian, &serve);
    serve.stdout(Stdio::piped()).stderr(log);
    let mut served = KilledOnDrop(serve.spawn().unwrap());
    let mut line = String::new();
    let stdout = served.0.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let log = || fs::read_to_string(debian.join("log")).unwrap();
    let address = line.trim().strip_prefix("listening on ");
    let address = address.unwrap_or_else(|| panic!("{line:?}\n{}", log()));
    let config = ["--config", "/etc/wharf/test.toml"];
    let wharf = |arguments: &[&str]| {
        let all = [&["wharf"], arguments, config.as_slice()].concat();
        output(&mut inside(debian, &all)).unwrap()
    };
    let key = wharf(&["key", "new", "ann@example.com"]);
    let api = Api::new(address, key.trim());
    let created = api.small_container().unwrap();
    let uuid = created["uuid"].as_str().unwrap();
    api.wait_for(uuid, "running").unwrap();
    api.delete(uuid).unwrap().expect(204).unwrap();
}
