"""A test of hardware virtualisation that runs a short program on it.

An existing /dev/kvm, and even one that creates machines, may still fail to run them.
"""

import os
import struct
import subprocess
import tempfile

DEVICE = "/dev/kvm"
# A real processor takes milliseconds for this many.
ITERATIONS = 20_000_000
LIMIT_SECONDS = 3
# isa-debug-exit ends QEMU with 2n+1.
WRITTEN = 0x2A
EXPECTED = 2 * WRITTEN + 1


def program(iterations):
    """A BIOS that counts down and then ends QEMU."""
    code = (
        b"\x66\xb9" + struct.pack("<I", iterations)  # mov ecx, iterations
        + b"\x66\x49"  # dec ecx
        + b"\x75\xfc"  # jnz to the dec
        + b"\xb0" + bytes([WRITTEN])  # mov al, WRITTEN
        + b"\xe6\xf4"  # out 0xf4, al
        + b"\xf4"  # hlt
    )
    image = bytearray(b"\xf4" * 0x10000)
    image[: len(code)] = code
    # The reset vector of the processor: a jump to the first byte.
    image[0xFFF0:0xFFF3] = b"\xe9" + struct.pack("<H", (0x10000 - 0xFFF3) & 0xFFFF)
    return bytes(image)


def probe():
    """Returns whether KVM works, and the reason."""
    if not os.path.exists(DEVICE):
        return False, f"{DEVICE} is not in the container"
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return False, f"{DEVICE} may not be opened by user {os.getuid()}"
    works, why = run("kvm")
    return works, why if works else f"{DEVICE} is there, but {why}"


def run(accelerator):
    """Runs the program on an accelerator; returns whether it worked, and the reason."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as bios:
        bios.write(program(ITERATIONS))
        bios.flush()
        command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none"]
        command += ["-machine", "pc", "-accel", accelerator, "-m", "16", "-no-reboot"]
        command += ["-bios", bios.name, "-device", "isa-debug-exit,iobase=0xf4,iosize=4"]
        try:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_SECONDS
            )
        except subprocess.TimeoutExpired:
            return False, f"a loop that takes milliseconds did not end within {LIMIT_SECONDS} s"
    if ended.returncode == EXPECTED:
        return True, "a loop ran on it"
    said = ended.stderr.decode(errors="replace").strip().splitlines()
    return False, f"QEMU ended with {ended.returncode}: {said[-1] if said else 'no message'}"
