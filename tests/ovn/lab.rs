//! The lab, which is made of the scripts beside the driver.

use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;
use wharf_testkit::http::{Endpoint, HttpClient};
use wharf_testkit::images;
use wharf_testkit::workspace::root;

/// The names and addresses of `lib.sh`.
pub const MEMBERS: usize = 2;
pub const PROJECT: &str = "ovnlab";
pub const ACL: &str = "wharf";
pub const UPLINK: &str = "up0";
pub const LOGIN_HOST: &str = "203.0.113.1";
pub const PUBLIC_HOST: &str = "203.0.113.10";
pub const PUBLISH_CIDR: &str = "198.18.40.128/26";
pub const FIRST_PORT: u16 = 20_000;
pub const N_PORTS: u16 = 64;
pub const VISITOR: &str = "wharf-ovn-visitor";
const WORLD: &str = "wharf-ovn-world";
const DIRECTORY: &str = "/var/lib/wharf-ovn-lab";
/// The variable with the name of a test, for its process.
const INSIDE: &str = "WHARF_OVN_LAB";

/// A file of the lab.
pub fn file(name: &str) -> PathBuf {
    PathBuf::from(DIRECTORY).join(name)
}

/// A client of a member with all rights; members count from 1.
pub fn admin(member: usize) -> HttpClient {
    let socket = file(&format!("m{member}/incus/unix.socket"));
    HttpClient::new(Endpoint::Unix(socket))
}

/// The address of a member.
pub fn address(member: usize) -> String {
    format!("10.87.0.{member}")
}

/// Whether this process runs in the namespace of the router.
pub fn is_inside() -> bool {
    test_inside().is_some()
}

/// The name of the test that this process runs there.
pub fn test_inside() -> Option<String> {
    std::env::var(INSIDE).ok()
}

/// Starts the lab, in place of one that was left, and imports the base image.
pub fn up() -> Result<()> {
    down()?;
    wharf_tests::install_ssh()?;
    script("up.sh")?;
    images::ensure_on_incus(&admin(1), PROJECT, &["base"], None)
}

/// Removes the lab.
pub fn down() -> Result<()> {
    script("down.sh")
}

/// Runs a test in this program, as a process in the namespace of the router.
pub fn run_inside(test: &str) -> Result<()> {
    let output = Command::new("ip")
        .args(["netns", "exec", WORLD])
        .arg(std::env::current_exe()?)
        .env(INSIDE, test)
        .output()
        .context("ip")?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    ensure!(output.status.success(), "{said}");
    print!("{said}");
    Ok(())
}

fn script(name: &str) -> Result<()> {
    let script = root().join("plugins/driver-incus/ovn").join(name);
    let status = Command::new("bash")
        .arg(&script)
        .env("MEMBERS", MEMBERS.to_string())
        .status()
        .context("bash")?;
    ensure!(status.success(), "{}: {status}", script.display());
    Ok(())
}
