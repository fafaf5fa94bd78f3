"""The machine as its environment describes it."""

import os
import socket
from dataclasses import dataclass

from .log import Failure


@dataclass(frozen=True)
class Settings:
    """The requested properties of the machine."""

    vcpus: int
    mem_mib: int
    disk_gib: int
    hostname: str

    @classmethod
    def read(cls, environment=os.environ):
        """Reads WHARF_VM_VCPUS, WHARF_VM_MEM_MIB and WHARF_VM_DISK_GIB. The host name is the
        container's."""
        return cls(
            vcpus=_positive(environment, "WHARF_VM_VCPUS"),
            mem_mib=_positive(environment, "WHARF_VM_MEM_MIB"),
            disk_gib=_positive(environment, "WHARF_VM_DISK_GIB"),
            hostname=socket.gethostname(),
        )


def _positive(environment, name):
    text = environment.get(name, "")
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise Failure(f"{name} is {text!r}: it must be a positive number")
    return int(text)
