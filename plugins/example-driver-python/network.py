"""Networks of cells. Nothing of them is in the node's own network: a cell's interface leads to a
bridge in a network namespace of the owner's. Connections to published ports are relayed by celld."""

import contextlib, ctypes, hashlib, os, socket, subprocess, threading
from pathlib import Path

NAMESPACES = Path("/run/netns")
CLONE_NEWNET = 0x4000_0000
LIBC = ctypes.CDLL(None, use_errno=True)
# Cells of an owner come and go at once, and the last one takes the switch with it.
SWITCHES = threading.Lock()


def ip(*words, check=True):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if check and done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def short(*words):
    """A name for an interface, which has at most 15 characters."""
    return hashlib.sha256("/".join(words).encode()).hexdigest()[:12]


def name(id):
    return f"cell-{short(id)}"


def path(id):
    return NAMESPACES / name(id)


def switch_of(installation, network):
    return f"cells-{short(installation, network['id'])}"


def create(id, installation, network):
    """Connects a cell to the switch of its owner. Only the node can change its interface."""
    cell, switch, port = name(id), switch_of(installation, network), short(id)
    with SWITCHES:
        if not (NAMESPACES / switch).exists():
            ip("netns", "add", switch)
            ip("-n", switch, "link", "add", "switch", "type", "bridge")
            ip("-n", switch, "link", "set", "switch", "up")
        ip("netns", "add", cell)
        peer = ("peer", "name", port, "netns", switch)
        ip("link", "add", "eth0", "netns", cell, "type", "veth", *peer)
        ip("-n", switch, "link", "set", port, "master", "switch", "up")
    address = f"{network['address']}/{network['prefix']}"
    ip("-n", cell, "address", "add", address, "dev", "eth0")
    for interface in ("lo", "eth0"):
        ip("-n", cell, "link", "set", interface, "up")
    # Processes of the cell have no rights over this namespace, and may want ports below 1024.
    setting = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
    ip("netns", "exec", cell, "sh", "-c", f"echo 0 > {setting}")


def remove(id, installation, network):
    """Removes the interface of a cell, and the switch with its last port."""
    switch = switch_of(installation, network)
    with SWITCHES:
        if path(id).exists():
            ip("netns", "delete", name(id))
        if (NAMESPACES / switch).exists():
            ip("-n", switch, "link", "delete", short(id), check=False)
            show = ["ip", "-n", switch, "-o", "link", "show", "master", "switch"]
            if not subprocess.run(show, capture_output=True).stdout.strip():
                ip("netns", "delete", switch)


class Relay:
    """Passes connections from a port of the node to a port of a cell."""

    def __init__(self, id, listen, port):
        self.namespace, self.port = path(id), port
        self.listener = socket.create_server(listen, backlog=128)
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                outer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(outer,), daemon=True).start()

    def serve(self, outer):
        with outer, contextlib.suppress(OSError):
            # A socket belongs to the network of the thread that made it.
            with open(self.namespace) as namespace:
                if LIBC.setns(namespace.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as inner:
                inner.settimeout(None)
                back = threading.Thread(target=pump, args=(inner, outer), daemon=True)
                back.start()
                pump(outer, inner)
                back.join()


def pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
