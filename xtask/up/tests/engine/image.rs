//! The promises of the image `base`.

use crate::container::{Container, Network, PASSWORD, USER};
use crate::ssh::{self, KeyPair};
use anyhow::{Context, Result, ensure};
use std::time::{Duration, Instant};
use wharf_testkit::http::Client;

pub fn logins(client: &Client, key: &KeyPair) -> Result<()> {
    let network = Network::make(client, 1)?;
    let container = Container::create(&network, 2, key, None)?;
    let start = Instant::now();
    container.start()?;
    println!("start to SSH banner: {:?}", start.elapsed());
    let port = container.port;

    ensure!(
        key.run(port, "id -un; sudo id -u; python3 -c 'print(6*7)'")? == format!("{USER}\n0\n42")
    );
    ensure!(key.run_with_password(USER, port, PASSWORD, "echo in")? == "in");
    ensure!(
        key.run_with_password(USER, port, "wrong", "echo in")
            .is_err(),
        "wrong password"
    );
    ensure!(key.run_as("root", port, "echo in").is_err(), "root by key");
    ensure!(
        key.run_with_password("root", port, PASSWORD, "echo in")
            .is_err(),
        "root by password"
    );

    let files =
        "stat -c '%U %a' ~/.ssh ~/.ssh/authorized_keys; sudo ls -A /etc/wharf; locale | head -1";
    let expected = format!("{USER} 700\n{USER} 600\nLANG=C.UTF-8");
    ensure!(
        key.run(port, files)? == expected,
        "{}",
        key.run(port, files)?
    );
    // Root inside has no rights on the node.
    let pid = container.pid()?;
    let uids = crate::read(format!("/proc/{pid}/uid_map"));
    let outside: u32 = uids.split_whitespace().nth(1).unwrap_or("0").parse()?;
    ensure!(outside >= 100_000, "root inside is {outside} outside");
    Ok(())
}

pub fn limits(client: &Client, key: &KeyPair, disk_enforced: bool) -> Result<()> {
    let network = Network::make(client, 1)?;
    let container = Container::create(&network, 2, key, disk_enforced.then_some("2G"))?;
    container.start()?;
    let fill = "fallocate -l 1G ~/one && echo one; fallocate -l 2G ~/two && echo two; true";
    let (port, expected) = (
        container.port,
        if disk_enforced { "one" } else { "one\ntwo" },
    );
    ensure!(key.run(port, fill)? == expected);
    // More memory than the container has.
    let eat = "python3 -c 'x = bytearray(700 << 20)' 2>/dev/null; echo $?";
    ensure!(key.run(port, eat)? == "137");
    Ok(())
}

pub fn restart_and_power_off(client: &Client, key: &KeyPair) -> Result<()> {
    let network = Network::make(client, 1)?;
    let container = Container::run(&network, 2, key)?;
    let port = container.port;
    let host_key = ssh::host_key(port)?;
    key.run(port, "echo kept > ~/file")?;
    ensure!(
        key.run(port, "/usr/local/sbin/poweroff; echo $?")? == "1",
        "poweroff is for root"
    );
    // The connection dies with the instance.
    let _ = key.run(port, "sudo poweroff; sleep 10");
    container.wait_for_end()?;
    container.start()?;
    ensure!(key.run(port, "cat ~/file")? == "kept");
    ensure!(ssh::host_key(port)? == host_key, "the host key changed");
    let other = Container::run(&network, 3, key)?;
    ensure!(
        ssh::host_key(other.port)? != host_key,
        "two instances have the same host key"
    );
    // sshd is restarted when it ends.
    key.run(port, "sudo pkill -o -x sshd; true").ok();
    ssh::wait_for_banner(port)?;
    ensure!(key.run(port, "cat ~/file")? == "kept");
    Ok(())
}

pub fn stop(client: &Client, key: &KeyPair) -> Result<()> {
    let network = Network::make(client, 1)?;
    let container = Container::run(&network, 2, key)?;
    let start = Instant::now();
    container.post("stop?t=10")?;
    println!("graceful stop: {:?}", start.elapsed());
    ensure!(start.elapsed() < Duration::from_secs(2));

    container.start()?;
    let deaf = "nohup sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' >/dev/null 2>&1 &";
    key.run(container.port, deaf)?;
    let start = Instant::now();
    container.post("stop?t=10")?;
    println!(
        "stop with a process that ignores TERM: {:?}",
        start.elapsed()
    );
    ensure!(start.elapsed() < Duration::from_secs(6));
    Ok(())
}

/// Kills the first start at several points; the next start completes it.
pub fn killed_first_start(client: &Client, key: &KeyPair) -> Result<()> {
    let network = Network::make(client, 1)?;
    for delay in (0..120).step_by(10) {
        let container = Container::create(&network, 2, key, None)?;
        container.post("start")?;
        std::thread::sleep(Duration::from_millis(delay));
        container.post("kill").ok();
        container.wait_for_end()?;
        container
            .start()
            .with_context(|| format!("killed after {delay} ms"))?;
        let result = key.run(container.port, "sudo id -u; ls -A ~ | head -1");
        ensure!(result? == "0\n.bash_logout", "killed after {delay} ms");
        ensure!(key.run_with_password(USER, container.port, PASSWORD, "echo in")? == "in");
    }
    Ok(())
}
