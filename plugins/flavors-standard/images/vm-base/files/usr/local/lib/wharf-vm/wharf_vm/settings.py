"""What the driver says of the machine, in the environment."""

import os
from dataclasses import dataclass

from .log import Failure


@dataclass(frozen=True)
class Settings:
    """The machine as its user asked for it."""

    vcpus: int
    mem_mib: int
    disk_gib: int
    hostname: str

    @classmethod
    def read(cls, environment=os.environ):
        """From WHARF_VM_VCPUS, WHARF_VM_MEM_MIB, WHARF_VM_DISK_GIB and WHARF_VM_HOSTNAME."""
        hostname = environment.get("WHARF_VM_HOSTNAME", "")
        if not hostname:
            raise Failure("WHARF_VM_HOSTNAME is missing: the machine's name")
        return cls(
            vcpus=_positive(environment, "WHARF_VM_VCPUS"),
            mem_mib=_positive(environment, "WHARF_VM_MEM_MIB"),
            disk_gib=_positive(environment, "WHARF_VM_DISK_GIB"),
            hostname=hostname,
        )


def _positive(environment, name):
    text = environment.get(name, "")
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise Failure(f"{name} is {text!r}: it must be a positive number")
    return int(text)
