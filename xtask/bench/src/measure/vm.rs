//! A virtual machine, from the request until it accepts SSH. The baseline is plain QEMU with that disk, in
//! a container of dockerd.

use super::engine::{LOCALHOST, Ours, is_possible, private};
use crate::Options;
use crate::pairs::Pairs;
use crate::table::{Table, Target};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::time::{Duration, Instant};
use wharf_testkit::engine::Kind;
use wharf_testkit::http::{Body, HttpClient, Request};
use wharf_testkit::images;
use wharf_testkit::ssh::has_banner;

/// The port of plain QEMU's machine.
const PORT: u16 = 18_600;
/// Pairs of runs. An emulated machine boots for half a minute.
const PAIRS: usize = 3;
const BOOT: f64 = 1.25;
const DEADLINE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(20);
const NAME: &str = "bench-qemu";

/// Ordinary arguments of QEMU, with made-up credentials for the first boot.
const PLAIN: &str = r#"
set -e
disk=/tmp/disk.qcow2 image=/usr/local/share/wharf-vm
qemu-img create -q -f qcow2 -b $image/disk.qcow2 -F qcow2 $disk 10G
set --
for credential in user=someone password=! hostname=plain; do
    set -- "$@" -smbios "type=11,value=io.systemd.credential:wharf.$credential"
done
exec qemu-system-x86_64 "$@" -nodefaults -display none -machine q35 -m 1024 -smp 1 \
    -accel tcg,thread=multi,tb-size=128 -cpu max \
    -kernel $image/kernel -initrd $image/initrd.cpio \
    -append 'root=/dev/vda rw rootfstype=ext4 quiet net.ifnames=0' \
    -drive file=$disk,if=virtio,format=qcow2 \
    -netdev user,id=net0,hostfwd=tcp::22-:22 -device virtio-net-pci,netdev=net0
"#;

/// Measures a creation.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    const WHAT: &str = "VM → running beside plain QEMU";
    if !is_possible(options, table, WHAT) {
        return Ok(());
    }
    let dir = tempfile::Builder::new().prefix("wharf-bench-").tempdir()?;
    let engine = private(Kind::Dockerd, dir.path())?;
    images::ensure(&engine.client(), &["vm-base"])?;
    let ours = Ours::start(&engine, dir.path())?;
    let client = engine.client();
    let machine = || {
        let small = json!({
            "resource_type": "vm", "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
        });
        ours.one(small, Duration::ZERO, DEADLINE)
    };
    // To fill the disk cache.
    machine()?;
    let runs = Pairs::measure(PAIRS, machine, || plain(&client))?;
    let (ours, plain, ratio) = runs.median(Duration::as_secs_f64)?;
    table.row(
        WHAT,
        (
            format!("{:.1} s", ours.as_secs_f64()),
            format!("{:.1} s, QEMU", plain.as_secs_f64()),
        ),
        ratio,
        Target::AtMost(BOOT),
    );
    engine.stop()
}

fn plain(client: &HttpClient) -> Result<Duration> {
    let send = |method: &str, path: &str, body: Body| {
        let request = Request::new(method, path).timeout(DEADLINE).body(body);
        let response = client.send(request)?.ok();
        response.with_context(|| format!("{method} {path}"))
    };
    let body = json!({
        "Image": "localhost/wharf/vm-base:1",
        "Entrypoint": ["/bin/sh", "-c", PLAIN],
        "ExposedPorts": { "22/tcp": {} },
        "HostConfig": {
            "Sysctls": { "net.ipv4.ip_unprivileged_port_start": "0" },
            "PortBindings": { "22/tcp": [{ "HostIp": LOCALHOST, "HostPort": PORT.to_string() }] },
        },
    });
    let begin = Instant::now();
    let create = format!("/containers/create?name={NAME}");
    send("POST", &create, Body::Json(body))?;
    send("POST", &format!("/containers/{NAME}/start"), Body::Empty)?;
    while !has_banner(LOCALHOST, PORT) {
        ensure!(begin.elapsed() < DEADLINE, "no SSH");
        std::thread::sleep(PAUSE);
    }
    let took = begin.elapsed();
    let remove = format!("/containers/{NAME}?force=true&v=true");
    send("DELETE", &remove, Body::Empty)?;
    Ok(took)
}
