"""Input of the first boot: systemd's credentials, in the machine's SMBIOS tables.

They are passed in files, because other processes can read arguments and environment.
"""

import base64
import os
import shutil

from . import paths

# A machine without `user` has completed its first boot.
NAMES = ("user", "password", "authorized_keys")


def credentials(first_boot, hostname):
    """Returns one SMBIOS string for each file of the directory, and one for the host name."""
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
    """Writes the files for QEMU's `-smbios type=11,path=`; none after the first boot."""
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
    """Removes the copies, once QEMU has read them."""
    shutil.rmtree(paths.CREDENTIALS, ignore_errors=True)


def forget():
    """Removes the credentials after the first boot. `user` goes first, so that an interruption
    cannot cause another first boot."""
    for name in NAMES:
        (paths.FIRST_BOOT / name).unlink(missing_ok=True)
