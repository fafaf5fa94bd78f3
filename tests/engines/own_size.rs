//! The instance's own size, and the comfort of `base`, as seen from inside.

use crate::lab::{Lab, Neighbours, SIZE, inside};
use anyhow::{Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Counts CPUs as Python and the shell do, and reads RAM in MiB, shared memory in MiB and seconds since
/// the start.
const SEEN: &str = "nproc; python3 -c 'import os; print(os.cpu_count())'; \
    grep -c ^processor /proc/cpuinfo; free -m | awk '/^Mem:/ { print $2 }'; \
    df -m --output=size /dev/shm | tail -n 1; cut -d. -f1 /proc/uptime";

/// Checks the size that an instance shows; shared memory stays as it was at the creation.
pub fn is_shown(instance: &Value, (n_vcpus, mem_gib): (u32, u32)) -> Result<()> {
    // lxcfs may show the old length of the list of CPUs once.
    inside(instance, SEEN)?;
    let seen = inside(instance, SEEN)?;
    let seen = seen.split_whitespace().map(str::parse);
    let seen: Vec<u64> = seen.collect::<Result<_, _>>()?;
    let (n, cores) = (
        u64::from(n_vcpus),
        std::thread::available_parallelism()?.get(),
    );
    // Not all ways to count know more CPUs than the node has.
    let counts = seen[..3].iter().all(|count| *count == n);
    ensure!(
        (counts || n > u64::try_from(cores)?)
            && seen[3..5] == [u64::from(mem_gib) * 1024, u64::from(SIZE.1) * 512],
        "{seen:?} is not {n_vcpus} and {mem_gib} GiB"
    );
    ensure!(seen[5] < 3600, "the uptime is the machine's: {seen:?}");
    Ok(())
}

pub fn and_nothing_else(_: &impl Lab, all: &mut Neighbours) -> Result<()> {
    is_shown(&all.mine, SIZE)?;
    for forbidden in [
        "sudo sh -c 'echo 1 > /proc/uptime'",
        "sudo hostname renamed",
    ] {
        ensure!(inside(&all.mine, forbidden).is_err(), "{forbidden}");
    }
    inside(&all.mine, "ping -c 1 -w 10 127.0.0.1")?;
    let shared = "head -c 900M /dev/zero > /dev/shm/x && rm /dev/shm/x";
    inside(&all.mine, shared).map(drop)
}

/// Makes the operator's authority in this file, and returns settings with it and with package mirrors.
pub fn operators_sources(ca: &Path) -> Result<String> {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=The operator's own", "-keyout"])
        .arg(ca.with_extension("key"))
        .arg("-out")
        .arg(ca)
        .output()?;
    ensure!(made.status.success(), "openssl");
    Ok(format!(
        "trust_ca = [\"{}\"]\npackage_mirrors = {{ apt = \"http://mirror.example/debian\", \
         pip = \"https://mirror.example/simple\", http_proxy = \"http://proxy.example:3128\" }}\n",
        ca.display()
    ))
}

pub fn base_is_comfortable(_: &impl Lab, all: &mut Neighbours) -> Result<()> {
    let look = |command: &str| inside(&all.mine, command);
    look(
        "for program in git vim tmux rsync make man unzip htop uv uvx crontab curl wget nano less ping; \
         do command -v $program || { echo no $program >&2; exit 1; }; done",
    )?;
    look("MANPAGER=cat man ls | grep -q 'list directory contents'")?;
    look("test -f /usr/share/bash-completion/bash_completion")?;
    look("pgrep -x cron")?;
    let greeting = look("bash -lic true 2>/dev/null")?;
    ensure!(
        greeting.contains("sized: flavor base, 1 vCPU, 2 GiB RAM")
            && greeting.contains("wharf-help"),
        "{greeting}"
    );
    ensure!(look("touch .hushlogin; bash -lic true 2>/dev/null")? == "");
    let help = look("PAGER=cat wharf-help")?;
    ensure!(help.contains("pip install"), "{help}");
    // The operator's authority, and the package sources.
    let text = fs::read_to_string(all.files.path().join("ca.pem"))?;
    let line = text.lines().nth(1).unwrap_or_default();
    look(&format!(
        "grep -qxF '{line}' /etc/ssl/certs/ca-certificates.crt"
    ))?;
    let pip = look(
        "python3 -m venv env && env/bin/pip config debug | grep -F PIP_; echo $UV_DEFAULT_INDEX",
    )?;
    ensure!(
        pip.matches("https://mirror.example/simple").count() == 2,
        "{pip}"
    );
    ensure!(
        pip.contains("PIP_CERT='/etc/ssl/certs/ca-certificates.crt'"),
        "{pip}"
    );
    let apt = look("apt-config dump | grep http::Proxy; cat /etc/apt/sources.list")?;
    ensure!(apt.contains("http://proxy.example:3128"), "{apt}");
    ensure!(apt.contains("http://mirror.example/debian"), "{apt}");
    Ok(())
}
