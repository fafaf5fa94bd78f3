#!/usr/bin/python3
"""celld: the engine of the example driver. It runs cells: processes in namespaces of their own.

    celld.py --root /var/lib/celld --socket /run/celld.sock

A cell has a root file system on a disk of its own, and sees the node's /usr read-only. Its users are
mapped to unprivileged users of the node. It has its own processes, mounts, host name and network,
which reaches the cells of its owner and nothing else. Published ports are relayed. plugins/README.md
says what this does not isolate. Needs root, Linux with user namespaces, util-linux, iproute2 and e2fsprogs.
"""

import argparse, http.server, io, json, os, re, socketserver, tarfile, threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import cells

LARGEST_BODY = 64 << 20
ID = r"(?P<id>[a-z0-9-]{1,100})"
STORE: cells.Store


class Handler(http.server.BaseHTTPRequestHandler):
    """Finds the function for a request, and sends its result as JSON."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        target = urlsplit(self.path)
        self.query = {key: values[0] for key, values in parse_qs(target.query).items()}
        try:
            length = int(self.headers.get("Content-Length", 0))
            if length > LARGEST_BODY:
                self.close_connection = True
                raise cells.Refusal(413, f"a body has at most {LARGEST_BODY} bytes")
            self.body = self.rfile.read(length)
            for method, path, function in ROUTES:
                match = re.fullmatch(path, target.path)
                if match and method == self.command:
                    status, result = 200, function(self, **match.groupdict())
                    break
            else:
                raise cells.Refusal(404, f"no such request: {self.command} {target.path}")
        except cells.Refusal as refusal:
            status, result = refusal.status, refusal.body
        except (KeyError, TypeError, ValueError) as error:
            status, result = 400, {"message": f"{type(error).__name__}: {error}"}
        except Exception as error:
            status, result = 500, {"message": f"{type(error).__name__}: {error}"}
        body = json.dumps(result).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer

    def log_message(self, text, *arguments):
        print(f"{self.command} {self.path} {arguments[1] if len(arguments) > 1 else ''}", flush=True)


def info(_):
    return STORE.info()


def read_mark(_, installation):
    return {"mark": STORE.mark(installation, None)}


def write_mark(request, installation):
    return {"mark": STORE.mark(installation, json.loads(request.body)["mark"])}


def list_cells(request):
    wanted = request.query["installation"]
    return [cell.report() for cell in STORE.all() if cell.spec["installation"] == wanted]


def create(request, id):
    return STORE.create(id, json.loads(request.body)).report()


def files(request, id):
    with STORE.locked(id) as cell, tarfile.open(fileobj=io.BytesIO(request.body)) as archive:
        cell.unpack(archive)
        return cell.report()


def read(_, id):
    return STORE.find(id).report()


def start(_, id):
    with STORE.locked(id) as cell:
        cell.start()
        return cell.report()


def stop(request, id):
    with STORE.locked(id) as cell:
        cell.stop(int(request.query["grace_ms"]) / 1000)
        return cell.report()


def resize(request, id):
    with STORE.locked(id) as cell:
        cell.resize(json.loads(request.body))
        return cell.report()


def delete(_, id):
    with STORE.locked(id) as cell:
        STORE.delete(cell)
        return {}


def usage(_, id):
    return STORE.find(id).usage()


ROUTES = [
    ("GET", "/info", info),
    ("GET", "/marks/(?P<installation>[a-z0-9-]+)", read_mark),
    ("PUT", "/marks/(?P<installation>[a-z0-9-]+)", write_mark),
    ("GET", "/cells", list_cells),
    ("PUT", f"/cells/{ID}", create),
    ("PUT", f"/cells/{ID}/files", files),
    ("GET", f"/cells/{ID}", read),
    ("POST", f"/cells/{ID}/start", start),
    ("POST", f"/cells/{ID}/stop", stop),
    ("PATCH", f"/cells/{ID}", resize),
    ("DELETE", f"/cells/{ID}", delete),
    ("GET", f"/cells/{ID}/usage", usage),
]


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def get_request(self):
        connection, _ = super().get_request()
        return connection, ("socket", 0)


def main():
    global STORE
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", type=Path, required=True, help="directory of cells and images")
    parser.add_argument("--socket", type=Path, required=True, help="path of the Unix socket")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("celld needs root: it makes namespaces, mounts and control groups")
    STORE = cells.Store(options.root.resolve())
    options.socket.unlink(missing_ok=True)
    before = os.umask(0o077)  # The socket is root on the node: only root may connect.
    with Server(str(options.socket), Handler) as server:
        os.umask(before)
        print(f"listening on {options.socket}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
