"""The container's ports that QEMU forwards to the machine."""

import fcntl
import os
import re

from . import paths
from .log import Failure
from .qmp import NOT_UP, Monitor

# The SSH port is always open.
SSH = 22
# The machine's network in QEMU's configuration.
NETWORK = "net0"


def wanted(words):
    """Parses the given ports and adds SSH."""
    ports = {SSH}
    for word in words:
        if not (word.isascii() and word.isdigit() and 1 <= int(word) <= 65535):
            raise Failure(f"{word!r} is no port: it must be 1 to 65535")
        ports.add(int(word))
    return ports


def keep(words):
    """Writes the ports to the file atomically."""
    lines = "".join(f"{port}\n" for port in sorted(wanted(words)))
    draft = paths.PORTS.with_suffix(f".{os.getpid()}")
    draft.write_text(lines)
    draft.rename(paths.PORTS)


def read():
    """Returns the ports in the file; without a file, SSH only."""
    try:
        return wanted(paths.PORTS.read_text().split())
    except FileNotFoundError:
        return wanted([])


def forwarded(table):
    """Parses the forwarded ports in the answer to `info usernet`."""
    rows = re.findall(r"^\s*TCP\[HOST_FORWARD\]\s+\d+\s+\S+\s+(\d+)\s", table, re.MULTILINE)
    return {int(port) for port in rows}


def change(monitor, target):
    """Opens and closes ports until the forwards match the target. The result is checked with QEMU's
    list, since its replies are unreliable."""
    present = forwarded(monitor.human("info usernet"))
    said = []
    for port in sorted(present - target):
        said.append(monitor.human(f"hostfwd_remove {NETWORK} tcp:0.0.0.0:{port}"))
    for port in sorted(target - present):
        said.append(monitor.human(f"hostfwd_add {NETWORK} tcp:0.0.0.0:{port}-:{port}"))
    left = forwarded(monitor.human("info usernet")) ^ target
    if left:
        ports = ", ".join(map(str, sorted(left)))
        raise Failure(f"ports {ports} could not be changed: {' '.join(filter(None, said))}")
    return sorted(target - present), sorted(present - target)


def apply():
    """Applies the file to a running machine. Returns False if none runs: its start applies it."""
    try:
        # Two concurrent changes would undo each other.
        with open(paths.CONTROL_LOCK, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with Monitor(paths.CONTROL) as monitor:
                change(monitor, read())
        return True
    except NOT_UP:
        return False
