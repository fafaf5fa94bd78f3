"""Test support: wharf-vm in a directory of its own, with the fake QEMU."""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).parent
# Moves all paths of wharf_vm.paths below another root, and shortens the timeouts.
LAUNCH = """
import sys
from pathlib import Path
from wharf_vm import paths, run
for name, value in list(vars(paths).items()):
    if name.isupper():
        setattr(paths, name, Path(sys.argv[1]) / value.relative_to("/"))
run.POWERDOWN_EVERY_SECONDS = 0.1
run.STOP_SECONDS = 1
run.START_SECONDS = 2
from wharf_vm.main import main
sys.exit(main(sys.argv[2:]))
"""
SECRET = "$6$salt$hash-of-a-password"


class MachineTest(unittest.TestCase):
    """Gives each test a root with the driver's files."""

    def setUp(self):
        self._temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self._temporary.cleanup)
        self.root = Path(self._temporary.name)
        self.state = self.root / "var/lib/wharf"
        (self.state / "machine").mkdir(parents=True)
        self.first_boot = self.state / "first-boot"
        self.first_boot.mkdir()
        (self.first_boot / "user").write_text("user\n")
        (self.first_boot / "password").write_text(SECRET + "\n")
        self.record = self.root / "record"
        programs = self.root / "bin"
        programs.mkdir()
        (programs / "qemu-system-x86_64").symlink_to(HERE / "fake_qemu.py")
        disk = programs / "qemu-img"
        disk.write_text('#!/bin/sh\nfor last; do before=${file-}; file=$last; done\n: >"$before"\n')
        disk.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "WHARF_VM_VCPUS": "1",
            "WHARF_VM_MEM_MIB": "512",
            "WHARF_VM_DISK_GIB": "10",
            "FAKE_RECORD": str(self.record),
        }

    def start(self, how, *command):
        """Starts wharf-vm with `run`, or with another command."""
        return subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(self.root), *(command or ["run"])],
            env={**self.environment, "FAKE_QEMU": how},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self, process, limit=20):
        """Returns the exit code and the output."""
        try:
            said, _ = process.communicate(timeout=limit)
        finally:
            process.kill()
        return process.returncode, said

    def wait_until(self, true, limit=20):
        """Polls until the condition holds."""
        deadline = time.monotonic() + limit
        while not true():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def recorded(self):
        """Returns QEMU's arguments and commands."""
        return self.record.read_text().splitlines() if self.record.exists() else []
