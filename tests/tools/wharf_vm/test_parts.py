"""Unit tests of the modules."""

import base64
import struct
import tempfile
import unittest
from pathlib import Path

from wharf_vm import command, kvm, ports, seed
from wharf_vm.log import Failure
from wharf_vm.settings import Settings

# The output of QEMU 7.2 and 10.0, including connections.
TABLE = """Hub -1 (net0):\r
  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r
  TCP[ESTABLISHED]   15     10.211.7.10  8443       10.0.2.15    22     0     0\r
  TCP[HOST_FORWARD]  16               *    22       10.0.2.15    22     0     0\r
  TCP[HOST_FORWARD]  17         0.0.0.0  8080       10.0.2.15  8080     0     0\r
  UDP[236 sec]       18       10.0.2.15 36000        10.0.2.3    53     0     0\r
"""


class Qemu:
    """A fake monitor with forwards that can refuse ports."""

    def __init__(self, *present, refuses=()):
        self.present = set(present)
        self.refuses = set(refuses)

    def human(self, line):
        name, *words = line.split()
        if name == "info":
            return "".join(f"TCP[HOST_FORWARD] 9 * {p} 10.0.2.15 {p} 0 0\r\n" for p in self.present)
        port = int(words[1].split(":")[-1])
        if port in self.refuses:
            return f"could not set up rule {port}"
        (self.present.add if name == "hostfwd_add" else self.present.discard)(port)
        return ""


class Forwards(unittest.TestCase):
    def test_ssh_is_always_open(self):
        self.assertEqual(ports.wanted([]), {22})
        self.assertEqual(ports.wanted(["8080", "443", "22"]), {22, 443, 8080})

    def test_an_invalid_port_is_named(self):
        for text in ("0", "65536", "-1", "http", "80:81", "²"):
            with self.assertRaisesRegex(Failure, "is no port"):
                ports.wanted([text])

    def test_connections_are_not_forwards(self):
        self.assertEqual(ports.forwarded(TABLE), {22, 8080})

    def test_only_the_difference_is_changed(self):
        qemu = Qemu(22, 80)
        self.assertEqual(ports.change(qemu, {22, 443}), ([443], [80]))
        self.assertEqual(qemu.present, {22, 443})
        self.assertEqual(ports.change(qemu, {22, 443}), ([], []))

    def test_a_missing_forward_is_an_error(self):
        with self.assertRaisesRegex(Failure, "ports 443 .* could not set up rule 443"):
            ports.change(Qemu(22, refuses=[443]), {22, 443, 444})
        with self.assertRaisesRegex(Failure, "ports 80 "):
            ports.change(Qemu(22, 80, refuses=[80]), {22})


class FirstBoot(unittest.TestCase):
    def test_credentials_have_the_form_of_systemd(self):
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            (directory / "user").write_text("user\n")
            (directory / "authorized_keys").write_text("ssh-ed25519 AAAA a b\n")
            (directory / "stray").write_text("x")
            strings = seed.credentials(directory, "box")
        values = {}
        for name, text in strings.items():
            prefix, value = text.split(b"=", 1)
            self.assertEqual(prefix.decode(), f"io.systemd.credential.binary:wharf.{name}")
            values[name] = base64.b64decode(value)
        expected = {"hostname": b"box", "user": b"user", "authorized_keys": b"ssh-ed25519 AAAA a b"}
        self.assertEqual(values, expected)


class Probe(unittest.TestCase):
    def test_the_program_starts_with_its_first_byte(self):
        image = kvm.program(5)
        self.assertEqual(len(image), 0x10000)
        opcode, distance = struct.unpack("<BH", image[0xFFF0:0xFFF3])
        self.assertEqual((opcode, (0xFFF3 + distance) % 0x10000), (0xE9, 0))

    def test_the_loop_has_the_requested_length(self):
        image = kvm.program(kvm.ITERATIONS)
        self.assertEqual(struct.unpack("<I", image[2:6])[0], kvm.ITERATIONS)
        # The jump target is two instructions back: the dec.
        self.assertEqual(struct.unpack("<bb", image[8:10]), (0x75, -4))


class Arguments(unittest.TestCase):
    settings = Settings(vcpus=2, mem_mib=512, disk_gib=10, hostname="box")

    def test_the_accelerator_follows_the_probe(self):
        for usable, accelerator in ((True, "kvm"), (False, command.TCG)):
            words = command.qemu(self.settings, usable, [])
            self.assertEqual(words[words.index("-accel") + 1], accelerator)

    def test_the_sandbox_is_on_and_only_unix_sockets_listen(self):
        words = command.qemu(self.settings, False, [])
        self.assertTrue(words[words.index("-sandbox") + 1].startswith("on,"))
        self.assertFalse([word for word in words if "hostfwd" in word or "tcp:" in word])
