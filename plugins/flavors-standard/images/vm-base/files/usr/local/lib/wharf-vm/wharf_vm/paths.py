"""Paths in the container."""

from pathlib import Path

# Files of the image.
IMAGE = Path("/usr/local/share/wharf-vm")
BASE_DISK = IMAGE / "disk.qcow2"
KERNEL = IMAGE / "kernel"
INITRD = IMAGE / "initrd.cpio"

# The driver's files: credentials for the first boot, and the list of open ports.
STATE = Path("/var/lib/wharf")
PORTS = STATE / "ports"
FIRST_BOOT = STATE / "first-boot"

# This program's own directory; a driver's archives may change the owner of its parent.
MACHINE = STATE / "machine"
DISK = MACHINE / "disk.qcow2"
# The accelerator of the last start, for the driver.
ACCELERATION = MACHINE / "acceleration"

# Files of one start. QEMU serves one client per socket, so supervision and port changes have one
# each.
RUN = MACHINE / "run"
SUPERVISION = RUN / "supervision.sock"
CONTROL = RUN / "control.sock"
CONTROL_LOCK = RUN / "control.lock"
CREDENTIALS = RUN / "credentials"
