"""QEMU's arguments."""

from . import paths
from .ports import NETWORK

# The device through which the machine reports that it is ready.
READY = "ready"
# By default, the emulator's cache of translated code takes a quarter of the machine's RAM.
TCG = "tcg,thread=multi,tb-size=128"
# Drivers of unused q35 controllers only cost time.
KERNEL_LINE = (
    "root=/dev/vda rw rootfstype=ext4 console=ttyS0 quiet panic=10 net.ifnames=0 audit=0"
    " modprobe.blacklist=ahci,i2c_i801,lpc_ich"
)
# Emulation has no speculation to mitigate. Kernel modules for fast encryption would spend seconds
# on self-tests.
EMULATED_LINE = (
    " mitigations=off nokaslr random.trust_cpu=on"
    " modprobe.blacklist=aesni_intel,ghash_clmulni_intel,sha1_ssse3,sha256_ssse3,sha512_ssse3"
)
# Nested machines would be too slow.
EMULATED_CPU = "max,svm=off"


def qemu(settings, kvm, credentials):
    """Returns QEMU's command line, which every process of the node can read: no secrets."""
    command = ["qemu-system-x86_64", "-name", "wharf", "-no-user-config", "-nodefaults"]
    command += ["-display", "none", "-machine", "q35,usb=off"]
    command += ["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"]
    command += ["-accel", "kvm" if kvm else TCG, "-cpu", "host" if kvm else EMULATED_CPU]
    command += ["-smp", str(settings.vcpus), "-m", f"{settings.mem_mib}M"]
    command += ["-kernel", str(paths.KERNEL), "-initrd", str(paths.INITRD)]
    command += ["-append", KERNEL_LINE + ("" if kvm else EMULATED_LINE)]
    for name, path in (("supervision", paths.SUPERVISION), ("control", paths.CONTROL)):
        command += ["-chardev", f"socket,id={name},path={path},server=on,wait=off"]
        command += ["-mon", f"chardev={name},mode=control"]
    command += ["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
    # A full disk of the node is an I/O error in the machine; QEMU's default would pause it forever.
    command += [
        "-drive",
        f"if=none,id=disk0,file={paths.DISK},format=qcow2,cache=writeback,aio=threads"
        ",discard=unmap,detect-zeroes=unmap,werror=report,rerror=report",
        "-device",
        "virtio-blk-pci,drive=disk0",
    ]
    command += ["-netdev", f"user,id={NETWORK},net=10.0.2.0/24,ipv6=off"]
    command += ["-device", f"virtio-net-pci,netdev={NETWORK},romfile="]
    command += ["-object", "rng-random,id=rng0,filename=/dev/urandom"]
    command += ["-device", "virtio-rng-pci,rng=rng0"]
    command += ["-device", "virtio-balloon-pci,free-page-reporting=on"]
    command += ["-device", "virtio-serial-pci", "-chardev", f"ringbuf,id={READY},size=64"]
    command += ["-device", f"virtserialport,chardev={READY},name=wharf.ready"]
    for file in credentials:
        command += ["-smbios", f"type=11,path={file}"]
    return command
