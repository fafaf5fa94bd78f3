"""Control groups of cells: CPU, memory and number of processes, with version 1 or 2, as far as the
node has the controllers."""

import contextlib
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
VERSION_2 = (ROOT / "cgroup.controllers").exists()
PERIOD_US = 100_000
PROCESSES = 512


def parents():
    """The groups below which each cell has one, by controller."""
    if not VERSION_2:
        names = ("cpu", "cpuacct", "memory", "pids")
        return {name: ROOT / name / "celld" for name in names if (ROOT / name / "tasks").exists()}
    parent = ROOT / "celld"
    parent.mkdir(exist_ok=True)
    for group in (ROOT, parent):
        for name in ("cpu", "memory", "pids"):
            with contextlib.suppress(OSError):
                (group / "cgroup.subtree_control").write_text(f"+{name}")
    usable = (parent / "cgroup.subtree_control").read_text().split()
    return {name: parent for name in ("cpu", "memory", "pids") if name in usable}


def available():
    return sorted(set(parents()) & {"cpu", "memory", "pids"})


def groups(id):
    return sorted({parent / id for parent in parents().values()})


def apply(id, sizes):
    for group in groups(id):
        group.mkdir(parents=True, exist_ok=True)
    quota, memory = sizes["cpus"] * PERIOD_US, sizes["memory_bytes"]
    if VERSION_2:
        values = {
            "cpu": {"cpu.max": f"{quota} {PERIOD_US}"},
            "memory": {"memory.max": memory, "memory.swap.max": 0},
            "pids": {"pids.max": PROCESSES},
        }
    else:
        values = {
            "cpu": {"cpu.cfs_period_us": PERIOD_US, "cpu.cfs_quota_us": quota},
            "memory": {"memory.limit_in_bytes": memory},
            "pids": {"pids.max": PROCESSES},
        }
    for controller, parent in parents().items():
        for file, value in values.get(controller, {}).items():
            # A kernel without accounting of swap has no limit of it.
            if (parent / id / file).exists():
                (parent / id / file).write_text(str(value))


def usage(id):
    """The usage of a cell; 0 where the node does not count it. Cached files are no usage."""
    if VERSION_2:
        cpu, used, cached = "cpu.stat", "memory.current", "inactive_file"
    else:
        cpu, used, cached = "cpuacct.usage", "memory.usage_in_bytes", "total_inactive_file"
    cpu_text = read("cpu" if VERSION_2 else "cpuacct", id, cpu)
    cpu_ns = 1000 * int(cpu_text.split()[1]) if VERSION_2 else int(cpu_text)
    stat = dict(line.split() for line in read("memory", id, "memory.stat").splitlines() if " " in line)
    memory_bytes = max(0, int(read("memory", id, used)) - int(stat.get(cached, 0)))
    return {"cpu_ns": cpu_ns, "memory_bytes": memory_bytes}


def read(controller, id, file):
    try:
        return (parents()[controller] / id / file).read_text()
    except (KeyError, OSError):
        return "0 0" if file == "cpu.stat" else "0"


def processes(id):
    """All processes of a cell, as the node numbers them."""
    found = set()
    for group in groups(id):
        with contextlib.suppress(OSError):
            found.update(map(int, (group / "cgroup.procs").read_text().split()))
    return found


def remove(id):
    for group in groups(id):
        with contextlib.suppress(OSError):
            group.rmdir()
