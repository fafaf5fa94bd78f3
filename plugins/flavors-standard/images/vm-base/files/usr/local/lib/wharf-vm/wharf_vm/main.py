"""The commands.

    wharf-vm run          runs the machine until it ends, or until TERM
    wharf-vm set-ports P… opens exactly these ports, now and at later starts
    wharf-vm kvm-probe    tests whether hardware virtualisation works
"""

import sys

from . import kvm, ports
from .log import Failure, say
from .run import Machine
from .settings import Settings


def run(_):
    """Returns 0 if the machine turned itself off or was stopped."""
    return Machine(Settings.read()).run()


def set_ports(given):
    """Returns 0 even if no machine runs yet: its start applies the ports."""
    ports.keep(given)
    ports.apply()
    return 0


def kvm_probe(_):
    """Returns 0 if it works, else 1; prints the reason."""
    works, why = kvm.probe()
    print(why)
    return 0 if works else 1


COMMANDS = {"run": run, "set-ports": set_ports, "kvm-probe": kvm_probe}


def main(arguments):
    """Runs the command and returns the exit code."""
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
