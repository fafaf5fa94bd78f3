"""The home directory of a clone, and the first start on it."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(os.environ["SCRIPTS"])
OLD = "sk-ant-of-the-source"
NEW = "sk-or-of-the-clone"
TERMINAL = ".local/share/opencode/auth.json"
MARIMO = ".config/marimo/marimo.toml"
JUPYTER = ".env"


class CloneTest(unittest.TestCase):
    def setUp(self):
        self.fresh()

    def fresh(self):
        """Begins with an empty home directory."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.disk = Path(directory.name)
        self.home = self.disk / "home/user"
        self.home.mkdir(parents=True)

    def write(self, path, content, mode=0o600):
        path = self.home / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)

    def read(self, path):
        return (self.home / path).read_bytes().decode(errors="surrogateescape")

    def mode(self, path):
        return (self.home / path).stat().st_mode & 0o777

    def start(self, service, key=""):
        """Runs the hook of the first start. The disk has no as-user and no other user."""
        first_boot = self.disk / "first-boot"
        first_boot.mkdir(exist_ok=True)
        if key:
            (first_boot / "ai_provider_api_key").write_text(key)
        hook = (SCRIPTS / "first-boot.d/assistant").read_text()
        for here, there in [
            ("/usr/local/lib/wharf/as-user", "env"),
            ("/usr/local/lib/wharf", str(SCRIPTS)),
            ("/usr/bin/python3", sys.executable),
            ("/home/", f"{self.disk}/home/"),
            ("chown ", ": "),
        ]:
            hook = hook.replace(here, there)
        return subprocess.run(
            ["sh", "-c", hook, "assistant", "user"],
            env=os.environ
            | {"FIRST_BOOT": str(first_boot), "HOME": str(self.home), "WHARF_SERVICE": service},
            capture_output=True,
            text=True,
        )

    def clone(self, service, key=""):
        """Completes a first start, and returns what it said."""
        ended = self.start(service, key)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertNotIn(NEW, ended.stdout + ended.stderr)
        return ended.stderr

    def assert_no_old_key(self):
        """No file of the home has the key of the source, and none is left of an interrupted start."""
        for path in self.home.rglob("*"):
            self.assertFalse(path.name.endswith((".wharf", ".new")), path)
            if path.is_file():
                self.assertNotIn(OLD.encode(), path.read_bytes(), path)
