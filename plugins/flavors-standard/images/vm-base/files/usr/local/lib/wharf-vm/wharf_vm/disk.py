"""The machine's own disk, an overlay on the image's."""

import subprocess

from . import paths
from .log import Failure


def ensure(gib):
    """Creates the disk with exactly this size, unless it exists."""
    if paths.DISK.exists():
        return
    # An interrupted creation leaves only the draft.
    draft = paths.DISK.with_suffix(".new")
    draft.unlink(missing_ok=True)
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2"]
    command += ["-b", str(paths.BASE_DISK), str(draft), f"{gib}G"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        raise Failure(f"cannot create the disk of {gib} GiB: {made.stderr.strip()}")
    draft.rename(paths.DISK)
