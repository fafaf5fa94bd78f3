"""The commands.

    wharf-vm run          the machine, until it ends or TERM asks it to
    wharf-vm apply-ports  a running machine's open ports become those of /var/lib/wharf/ports
    wharf-vm kvm-probe    whether the processor's virtualization works here
"""

import sys

from . import kvm, ports
from .log import Failure, say
from .run import Machine
from .settings import Settings


def run():
    """0 when the machine turned itself off or was stopped."""
    return Machine(Settings.read()).run()


def apply_ports():
    """0 also when no machine runs: its start applies them."""
    ports.apply()
    return 0


def kvm_probe():
    """0 if it works, else 1; a line why."""
    works, why = kvm.probe()
    print(why)
    return 0 if works else 1


COMMANDS = {"run": run, "apply-ports": apply_ports, "kvm-probe": kvm_probe}


def main(arguments):
    """The exit code."""
    command = COMMANDS.get(arguments[0]) if len(arguments) == 1 else None
    if command is None:
        print(f"usage: wharf-vm {'|'.join(COMMANDS)}", file=sys.stderr)
        return 2
    try:
        return command()
    except Failure as failure:
        say(str(failure))
        return 1
