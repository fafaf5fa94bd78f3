"""The commands.

    wharf-vm run          the machine, until it ends or TERM asks it to
    wharf-vm set-ports P… a running machine's open ports become these, and those of later starts
    wharf-vm kvm-probe    whether the processor's virtualization works here
"""

import sys

from . import kvm, ports
from .log import Failure, say
from .run import Machine
from .settings import Settings


def run(_):
    """0 when the machine turned itself off or was stopped."""
    return Machine(Settings.read()).run()


def set_ports(given):
    """0 also when no machine runs yet: its start applies them."""
    ports.keep(given)
    ports.apply()
    return 0


def kvm_probe(_):
    """0 if it works, else 1; a line why."""
    works, why = kvm.probe()
    print(why)
    return 0 if works else 1


COMMANDS = {"run": run, "set-ports": set_ports, "kvm-probe": kvm_probe}


def main(arguments):
    """The exit code."""
    name, *words = arguments or [""]
    command = COMMANDS.get(name)
    if command is None or (words and command is not set_ports):
        print(f"usage: wharf-vm {'|'.join(COMMANDS)}", file=sys.stderr)
        return 2
    try:
        return command(words)
    except Failure as failure:
        say(str(failure))
        return 1
