//! The instance's own size, and the comfort of `base`, as seen from inside.

use crate::context::Context;
use anyhow::{Result, ensure};
use serde_json::json;
use std::fs;
use std::process::Command;
use wharf_tests::{Login, Ports, Server, small};

/// Counts CPUs as Python and the shell do, and reads RAM in MiB, shared memory in MiB and seconds since
/// the start.
const SEEN: &str = "nproc; python3 -c 'import os; print(os.cpu_count())'; \
    grep -c ^processor /proc/cpuinfo; free -m | awk '/^Mem:/ { print $2 }'; \
    df -m --output=size /dev/shm | tail -n 1; cut -d. -f1 /proc/uptime";

pub fn is_shown(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let mut body = small("container");
    body["name"] = json!("sized");
    body["n_vcpus"] = json!(1);
    body["mem_gib"] = json!(2);
    api.create(&body)?.expect(201)?;
    let running = api.wait_for("sized", "running")?;
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    let login = Login::Password(password);
    let seen = || -> Result<Vec<u64>> {
        let text = login.output(&running, SEEN)?;
        Ok(text
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?)
    };
    let first = seen()?;
    ensure!(first[..5] == [1, 1, 1, 2048, 1024], "{first:?}");
    ensure!(first[5] < 3600, "the uptime is the machine's: {first:?}");
    api.send(
        "PATCH",
        "/api/instance/sized/",
        &json!({ "n_vcpus": 2, "mem_gib": 3 }),
    )?
    .expect(200)?;
    // lxcfs may show the old length of the list of CPUs once.
    seen()?;
    let grown = seen()?;
    ensure!(grown[..5] == [2, 2, 2, 3072, 1024], "{grown:?}");
    let written = login.run(&running, "sudo sh -c 'echo 1 > /proc/uptime'")?;
    ensure!(
        !written.status.success(),
        "a file of the node can be written"
    );
    login.output(&running, "ping -c 1 -w 10 127.0.0.1")?;
    login.output(
        &running,
        "head -c 900M /dev/zero > /dev/shm/x && rm /dev/shm/x",
    )?;
    // It has its view again after a restart. No engine changes the hostname of a container.
    let renamed = json!({ "name": "renamed" });
    api.send("PATCH", "/api/instance/sized/", &renamed)?
        .expect(200)?;
    api.act("renamed", "stop")?.expect(200)?;
    api.act("renamed", "restart")?.expect(200)?;
    let running = api.wait_for("renamed", "running")?;
    login.wait_for_login(&running)?;
    let again = login.output(&running, SEEN)?;
    ensure!(again.starts_with("2\n2\n2\n3072\n"), "{again}");
    let by_root = login.run(&running, "sudo hostname renamed")?;
    ensure!(!by_root.status.success(), "root inside has CAP_SYS_ADMIN");
    let hostname = login.output(&running, "uname -n")?;
    ensure!(hostname.trim() == "sized", "{hostname}");
    api.delete("renamed")?.expect(204)?;
    server.finish()
}

pub fn base_is_comfortable(context: &Context) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (key, ca) = (dir.path().join("key.pem"), dir.path().join("ca.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ])
        .args(["-subj", "/CN=The operator's own", "-days", "2", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&ca)
        .output()?;
    ensure!(made.status.success(), "openssl");
    let sources = format!(
        "trust_ca = [\"{}\"]\npackage_mirrors = {{ apt = \"http://mirror.example/debian\", \
         pip = \"https://mirror.example/simple\", http_proxy = \"http://proxy.example:3128\" }}\n",
        ca.display()
    );
    let settings = context.settings(Ports::take(), "")?;
    let server = Server::start(&format!("{sources}{settings}"))?;
    let api = server.user("ann@example.com")?;
    let mut body = small("container");
    body["name"] = json!("comfort");
    api.create(&body)?.expect(201)?;
    let running = api.wait_for("comfort", "running")?;
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    let login = Login::Password(password);
    for program in [
        "git", "vim", "tmux", "rsync", "make", "man", "unzip", "htop", "uv", "uvx", "crontab",
        "curl", "wget", "nano", "less", "ping",
    ] {
        login.output(&running, &format!("command -v {program}"))?;
    }
    login.output(
        &running,
        "MANPAGER=cat man ls | grep -q 'list directory contents'",
    )?;
    login.output(
        &running,
        "test -f /usr/share/bash-completion/bash_completion",
    )?;
    login.output(&running, "pgrep -x cron")?;
    let greeting = login.output(&running, "bash -lic true 2>/dev/null")?;
    ensure!(
        greeting.contains("comfort: flavor base, 1 vCPU, 1 GiB RAM")
            && greeting.contains("wharf-help"),
        "{greeting}"
    );
    ensure!(login.output(&running, "touch .hushlogin; bash -lic true 2>/dev/null")? == "");
    let help = login.output(&running, "PAGER=cat wharf-help")?;
    ensure!(help.contains("pip install"), "{help}");
    // The operator's authority, and the package sources.
    let text = fs::read_to_string(&ca)?;
    let line = text.lines().nth(1).unwrap_or_default();
    login.output(
        &running,
        &format!("grep -qxF '{line}' /etc/ssl/certs/ca-certificates.crt"),
    )?;
    let pip =
        "python3 -m venv env && env/bin/pip config debug | grep -F PIP_; echo $UV_DEFAULT_INDEX";
    let pip = login.output(&running, pip)?;
    ensure!(
        pip.matches("https://mirror.example/simple").count() == 2,
        "{pip}"
    );
    ensure!(
        pip.contains("PIP_CERT='/etc/ssl/certs/ca-certificates.crt'"),
        "{pip}"
    );
    let apt = login.output(
        &running,
        "apt-config dump | grep http::Proxy; cat /etc/apt/sources.list",
    )?;
    ensure!(apt.contains("http://proxy.example:3128"), "{apt}");
    ensure!(apt.contains("http://mirror.example/debian"), "{apt}");
    api.delete("comfort")?.expect(204)?;
    server.finish()
}
