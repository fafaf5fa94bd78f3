//! Time of a virtual machine until SSH answers, compared with plain QEMU on that disk.

use crate::context::Context;
use crate::timing::banner;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::time::{Duration, Instant};
use wharf_tests::{Api, small};

/// The port of plain QEMU's machine.
const PORT: u16 = 19_978;
const LIMIT: Duration = Duration::from_secs(300);
const NAME: &str = "timing-qemu";

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

/// Prints the ratio; the benchmarks have the target.
pub fn to_ssh(context: &Context) -> Result<()> {
    context.with_vm_image()?;
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    // An earlier boot fills the disk cache for both.
    let ours = through_wharf(&api)?.as_secs_f64();
    let plain = plain_qemu(context)?.as_secs_f64();
    println!(
        "VM: POST to running {ours:.1} s; plain QEMU with the same disk to its SSH banner \
         {plain:.1} s; ratio {:.2}",
        ours / plain
    );
    server.finish()
}

fn through_wharf(api: &Api) -> Result<Duration> {
    let begin = Instant::now();
    let created = api.create(&small("vm"))?.expect(201)?;
    let uuid = created["uuid"].as_str().context("uuid")?;
    while api.instance(uuid)?.expect(200)?["state"] != "running" {
        ensure!(begin.elapsed() < LIMIT, "not running");
        std::thread::sleep(Duration::from_millis(20));
    }
    let running = begin.elapsed();
    api.delete(uuid)?.expect(204)?;
    Ok(running)
}

fn plain_qemu(context: &Context) -> Result<Duration> {
    let network = json!({ "Name": NAME, "Driver": "bridge" });
    context.by_hand("POST", "/networks/create", Some(network))?;
    let body = json!({
        "Image": "localhost/wharf/vm-base:1",
        "Entrypoint": ["/bin/sh", "-c", PLAIN],
        "ExposedPorts": { "22/tcp": {} },
        "HostConfig": context.host_config(json!({
            "NetworkMode": NAME,
            "Sysctls": { "net.ipv4.ip_unprivileged_port_start": "0" },
            "PortBindings": { "22/tcp": [{ "HostIp": "127.0.0.1", "HostPort": PORT.to_string() }] },
        })),
    });
    let begin = Instant::now();
    context.by_hand(
        "POST",
        &format!("/containers/create?name={NAME}"),
        Some(body),
    )?;
    context.by_hand("POST", &format!("/containers/{NAME}/start"), None)?;
    while !banner(PORT) {
        ensure!(begin.elapsed() < LIMIT, "no banner");
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = begin.elapsed();
    context.by_hand(
        "DELETE",
        &format!("/containers/{NAME}?force=true&v=true"),
        None,
    )?;
    context.by_hand("DELETE", &format!("/networks/{NAME}"), None)?;
    Ok(took)
}
