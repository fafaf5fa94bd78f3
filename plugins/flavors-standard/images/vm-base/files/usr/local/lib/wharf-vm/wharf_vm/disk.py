"""The machine's own disk: what it changed of the image's."""

import subprocess

from . import paths
from .log import Failure


def ensure(gib):
    """Makes it, once. It has exactly this size."""
    if paths.DISK.exists():
        return
    # Killed in the middle, it is made anew.
    draft = paths.DISK.with_suffix(".new")
    draft.unlink(missing_ok=True)
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2"]
    command += ["-b", str(paths.BASE_DISK), str(draft), f"{gib}G"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        raise Failure(f"the disk of {gib} GiB cannot be made: {made.stderr.strip()}")
    draft.rename(paths.DISK)
