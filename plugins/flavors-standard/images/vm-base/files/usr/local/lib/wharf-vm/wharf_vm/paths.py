"""Where things are in the container."""

from pathlib import Path

# From the image.
IMAGE = Path("/usr/local/share/wharf-vm")
BASE_DISK = IMAGE / "disk.qcow2"
KERNEL = IMAGE / "kernel"
INITRD = IMAGE / "initrd.cpio"

# What the machine's first boot gets, which the driver puts there, and which of its ports are open.
STATE = Path("/var/lib/wharf")
PORTS = STATE / "ports"
FIRST_BOOT = STATE / "first-boot"

# This program's, whoever the driver's archives give the directory above to.
MACHINE = STATE / "machine"
DISK = MACHINE / "disk.qcow2"
# What was chosen at the last start, for the driver to read.
ACCELERATION = MACHINE / "acceleration"

# Of one start. QEMU serves one client on each socket: the one that supervises it, and the one that
# changes ports.
RUN = MACHINE / "run"
SUPERVISION = RUN / "supervision.sock"
CONTROL = RUN / "control.sock"
CONTROL_LOCK = RUN / "control.lock"
CREDENTIALS = RUN / "credentials"
