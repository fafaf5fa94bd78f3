"""What the first boot gets: systemd's credentials, in the machine's SMBIOS tables.

Files, because arguments and environment of a process can be read by others.
"""

import base64
import os
import shutil

from . import paths

# A machine without `user` has had its first boot.
NAMES = ("user", "password", "authorized_keys")


def credentials(first_boot, hostname):
    """One SMBIOS string for each file of the directory, and for the name."""
    values = {"hostname": hostname.encode()}
    for name in NAMES:
        file = first_boot / name
        if file.is_file():
            values[name] = file.read_bytes().strip()
    return {
        name: b"io.systemd.credential.binary:wharf." + name.encode() + b"=" + base64.b64encode(value)
        for name, value in values.items()
    }


def write(hostname):
    """The files for QEMU's `-smbios type=11,path=`; none when the first boot is over."""
    if not (paths.FIRST_BOOT / "user").is_file():
        forget()
        return []
    paths.CREDENTIALS.mkdir(mode=0o700)
    files = []
    for name, text in credentials(paths.FIRST_BOOT, hostname).items():
        file = paths.CREDENTIALS / name
        with open(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as out:
            out.write(text)
        files.append(file)
    return files


def forget_copies():
    """Once QEMU has read them."""
    shutil.rmtree(paths.CREDENTIALS, ignore_errors=True)


def forget():
    """Once the machine has made them its own. `user` goes first: without it there is no first boot,
    however far this gets."""
    for name in NAMES:
        (paths.FIRST_BOOT / name).unlink(missing_ok=True)
