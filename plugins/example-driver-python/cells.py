"""The cells of celld: their disks, processes and limits. Everything durable is below one directory.

    images/NAME/            the files of an image; /init is its first process
    cells/ID/cell.json      written last at creation: a directory without it is removed
    cells/ID/disk.img       an ext4 file system of the cell's size, mounted on root/
    marks/INSTALLATION      the mark of this store
"""

import contextlib, json, os, re, shutil, signal, subprocess, threading, time
from pathlib import Path

import limits
import network

ENTER = Path(__file__).with_name("enter.sh")
# Each cell has 65,536 user ids of the node for itself.
FIRST_UID, UIDS = 1 << 20, 1 << 16
# Parts of a specification that may change after the creation.
SIZES = ("cpus", "memory_bytes", "disk_bytes")


class Refusal(Exception):
    """An answer with a status that is not a success."""

    def __init__(self, status, message, **more):
        self.status, self.body = status, {"message": message, **more}


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{command[0]}: {done.stderr.strip()}")


def write(path, text):
    """Replaces a file durably."""
    new = path.with_suffix(".new")
    with open(new, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


class Store:
    """All cells."""

    def __init__(self, root):
        self.root = root
        self.locks, self.making = {}, threading.Lock()
        for part in ("images", "cells", "marks"):
            (root / part).mkdir(parents=True, exist_ok=True)
        root.chmod(0o700)  # Disks have files of users, and the secrets of instances.
        self.cells = {}
        for directory in (root / "cells").iterdir():
            if (directory / "cell.json").exists():
                cell = self.cells[directory.name] = Cell(self, directory)
                if cell.is_running():
                    cell.open_ports()
            else:
                remove_tree(directory)

    def info(self):
        disk = os.statvfs(self.root)
        return {
            "version": "celld 1",
            "cpus": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "disk_bytes": disk.f_blocks * disk.f_frsize,
            "limits": limits.available(),
            "images": sorted(image.name for image in (self.root / "images").iterdir()),
            "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            "machine": os.uname().nodename,
        }

    def mark(self, installation, mark):
        path = self.root / "marks" / installation
        with self.making:
            if mark is not None and not path.exists():
                write(path, mark)
            return path.read_text() if path.exists() else None

    def all(self):
        return list(self.cells.values())

    def find(self, id):
        if id not in self.cells:
            raise Refusal(404, f"there is no cell {id}")
        return self.cells[id]

    @contextlib.contextmanager
    def locked(self, id):
        with self.lock(id):
            yield self.find(id)

    def lock(self, id):
        with self.making:
            return self.locks.setdefault(id, threading.Lock())

    def create(self, id, spec):
        with self.lock(id):
            if id in self.cells:
                if fixed(self.cells[id].spec) != fixed(spec):
                    raise Refusal(409, f"cell {id} exists with another specification")
                return self.cells[id]
            image = self.root / "images" / spec["image"]
            if not re.fullmatch("[a-z0-9-]+", spec["image"]) or not image.is_dir():
                raise Refusal(422, f"there is no image {spec['image']!r}", field="image")
            directory = self.root / "cells" / id
            with self.making:
                taken = {cell.state["slot"] for cell in self.all()}
                taken |= {int(path.read_text()) for path in self.root.glob("cells/*/slot")}
                slot = min(set(range(len(taken) + 1)) - taken)
                remove_tree(directory)
                directory.mkdir()
                (directory / "slot").write_text(str(slot))
            try:
                make_disk(directory, image, FIRST_UID + slot * UIDS, spec)
            except BaseException:
                remove_tree(directory)
                raise
            state = {"slot": slot, "pid": 0, "since": 0, "ran": False}
            state.update({size: spec[size] for size in SIZES})
            write(directory / "cell.json", json.dumps({"spec": spec, "state": state}))
            cell = self.cells[id] = Cell(self, directory)
            return cell

    def delete(self, cell):
        cell.stop(0)
        del self.cells[cell.id]
        (cell.directory / "cell.json").unlink()
        remove_tree(cell.directory)
        limits.remove(cell.id)


def fixed(spec):
    return {key: value for key, value in spec.items() if key not in SIZES}


def make_disk(directory, image, uid, spec):
    """Makes the disk of a cell, and copies the image to it as files of the cell's root."""
    disk, root = directory / "disk.img", directory / "root"
    root.mkdir()
    with open(disk, "w") as file:
        os.truncate(file.fileno(), spec["disk_bytes"])
    run("mkfs.ext4", "-q", "-m", "0", "-E", f"root_owner={uid}:{uid}", disk)
    run("mount", "-o", "loop,nodev,nosuid", disk, root)
    shutil.copytree(image, root, symlinks=True, dirs_exist_ok=True)
    for name in ("dev", "etc", "home", "proc", "root", "run", "tmp", "usr", "var"):
        (root / name).mkdir(exist_ok=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / name).symlink_to(f"usr/{name}")
    for parent, directories, names in os.walk(root):
        for name in (".", *directories, *names):
            os.lchown(os.path.join(parent, name), uid, uid)
    (root / "tmp").chmod(0o1777)


def remove_tree(directory):
    """Removes all parts of a cell."""
    if os.path.ismount(directory / "root"):
        run("umount", "--lazy", directory / "root")
    shutil.rmtree(directory, ignore_errors=True)


class Cell:
    """One cell."""

    def __init__(self, store, directory):
        self.store, self.directory, self.id = store, directory, directory.name
        loaded = json.loads((directory / "cell.json").read_text())
        self.spec, self.state = loaded["spec"], loaded["state"]
        self.root, self.relays = directory / "root", []

    @property
    def uid(self):
        return FIRST_UID + self.state["slot"] * UIDS

    def save(self, **changes):
        self.state.update(changes)
        whole = json.dumps({"spec": self.spec, "state": self.state})
        write(self.directory / "cell.json", whole)

    def report(self):
        phase = "running" if self.is_running() else "stopped" if self.state["ran"] else "new"
        spec = self.spec
        labels = {key: spec[key] for key in ("instance", "incarnation")}
        return {"phase": phase, "disk_bytes": self.state["disk_bytes"], **labels}

    def is_running(self):
        pid, since = self.state["pid"], self.state["since"]
        return pid > 0 and since == started_at(pid)

    def mount(self):
        """Mounts the disk again after a start of the node."""
        if not os.path.ismount(self.root):
            run("mount", "-o", "loop,nodev,nosuid", self.directory / "disk.img", self.root)

    def unpack(self, archive):
        if self.state["ran"]:
            raise Refusal(409, "files are unpacked before the first start")
        self.mount()
        for member in archive:
            path = self.root / member.name.lstrip("/")
            inside = Path(os.path.realpath(path.parent)).is_relative_to(self.root)
            if not inside or ".." in path.parts:
                raise Refusal(400, f"{member.name} is outside of the cell")
            if member.isdir():
                path.mkdir(exist_ok=True)
            elif member.isfile():
                path.unlink(missing_ok=True)
                path.write_bytes(archive.extractfile(member).read())
            else:
                raise Refusal(400, f"{member.name} is neither a file nor a directory")
            os.chown(path, self.uid + member.uid, self.uid + member.gid)
            path.chmod(member.mode)

    def start(self):
        if self.is_running():
            return
        self.mount()
        self.end()
        limits.apply(self.id, self.state)
        network.create(self.id, self.spec["installation"], self.spec["network"])
        # The process that makes the user namespace ends as soon as the cell has joined it.
        maker = subprocess.Popen(["unshare", "--user", "sleep", "60"])
        try:
            wait_until(lambda: has_own_namespace(maker.pid))
            for kind in ("uid", "gid"):
                Path(f"/proc/{maker.pid}/{kind}_map").write_text(f"0 {self.uid} {UIDS}")
            # Reported as having run even if celld ends here: its files must not be written again.
            self.save(ran=True)
            process = self.launch(maker.pid)
            wait_until(lambda: has_own_namespace(process.pid) or process.poll() is not None)
        finally:
            maker.kill()
            maker.wait()
        self.save(pid=process.pid, since=started_at(process.pid))
        self.open_ports()

    def launch(self, maker):
        """Starts the process within its limits and namespaces. It outlives celld."""
        groups = " ".join(str(group / "cgroup.procs") for group in limits.groups(self.id))
        join = f'for group in {groups}; do echo $$ > "$group"; done; exec "$@"'
        spec = self.spec
        return subprocess.Popen(
            ["sh", "-c", join, "sh"]
            + ["nsenter", f"--net={network.path(self.id)}", f"--user=/proc/{maker}/ns/user"]
            + ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL"]
            + ["--uts", "--ipc", "--cgroup"]
            + ["sh", str(ENTER), spec["hostname"]]
            + ["env", "-i", "PATH=/usr/sbin:/usr/bin", "HOME=/root", *spec["environment"], "/init"],
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def stop(self, grace):
        """Asks the first process to end, and kills it after the grace."""
        pid = self.state["pid"]
        if self.is_running():
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            for child in children if grace > 0 else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                wait_until(lambda: not self.is_running(), grace)
            if self.is_running():
                os.kill(pid, signal.SIGKILL)  # unshare's --kill-child ends the whole cell.
                wait_until(lambda: not self.is_running())
        self.save(pid=0, since=0)
        self.end()

    def open_ports(self):
        for port in self.spec["ports"]:
            # Cells of earlier versions have ports without an address.
            listen = (port.get("address", "127.0.0.1"), port["node"])
            relay = network.Relay(self.id, listen, port["cell"])
            self.relays.append(relay)

    def end(self):
        """Ends the rest of a run, even of one that began as celld was killed."""
        for pid in limits.processes(self.id):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not limits.processes(self.id))
        for relay in self.relays:
            relay.close()
        self.relays = []
        spec = self.spec
        network.remove(self.id, spec["installation"], spec["network"])

    def resize(self, sizes):
        """Applies all sizes or none. A disk never shrinks."""
        new = {size: int(sizes[size]) for size in SIZES}
        new["disk_bytes"] = max(new["disk_bytes"], self.state["disk_bytes"])
        if self.is_running() and new["memory_bytes"] < self.state["memory_bytes"]:
            used = limits.usage(self.id)["memory_bytes"]
            if used > new["memory_bytes"]:
                raise Refusal(507, "the cell uses more memory", memory_bytes=used)
        if new["disk_bytes"] > self.state["disk_bytes"]:
            if self.is_running():
                raise Refusal(409, "a disk grows while its cell is stopped")
            self.grow(new["disk_bytes"])
        try:
            limits.apply(self.id, new)
        except OSError:
            limits.apply(self.id, self.state)
            raise
        self.save(**new)

    def grow(self, size):
        """Enlarges the file system in place. After an interruption it works on, and grows again."""
        disk = self.directory / "disk.img"
        if os.path.ismount(self.root):
            run("umount", self.root)
        wait_until(lambda: not loop_devices(disk))
        run("e2fsck", "-fp", disk)
        os.truncate(disk, size)
        run("resize2fs", disk)
        self.mount()

    def usage(self):
        if not self.is_running():
            raise Refusal(409, "the cell does not run")
        disk = os.statvfs(self.root)
        used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
        return {"at_ns": time.time_ns(), "disk_bytes": used, **limits.usage(self.id)}


def loop_devices(disk):
    return subprocess.run(["losetup", "-j", disk], capture_output=True, check=True).stdout


def started_at(pid):
    """The start of a process, which tells it from a later one with its id; 0 if it has ended."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


def has_own_namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user")
    except OSError:
        return False


def wait_until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("a process did not begin or end in time")
        time.sleep(0.01)
