#!/usr/bin/env python3
"""A fake QEMU: answers its monitor protocol, and behaves as FAKE_QEMU says.

    powers-off   ends at the third press of the power button
    deaf         ends only when it is turned off
    crashes      ends with a signal after its first answer
    lost         meets an internal error after its first answer
    lingers      closes its monitor, and ends much later
"""

import base64
import json
import os
import signal
import socket
import sys
import threading
import time

HOW = os.environ["FAKE_QEMU"]
RECORD = os.environ["FAKE_RECORD"]
forwards = set()
presses = 0


def record(text):
    with open(RECORD, "a") as file:
        file.write(text + "\n")


def human(line):
    name, *words = line.split()
    if name == "hostfwd_add":
        forwards.add(words[1].split(":")[-1])
    elif name == "hostfwd_remove":
        forwards.discard(words[1].split(":")[-1])
        return "host forwarding rule removed"
    else:
        return "".join(f"  TCP[HOST_FORWARD]  9  *  {port}  10.0.2.15  {port}  0 0\r\n" for port in forwards)
    return ""


def answer(request):
    global presses
    name, arguments = request["execute"], request.get("arguments", {})
    if name == "human-monitor-command":
        return human(arguments["command-line"])
    if name == "ringbuf-read":
        return base64.b64encode(b"READY\n").decode()
    if name == "query-status":
        return {"status": "internal-error"}
    record(name)
    if name == "system_powerdown":
        presses += 1
        if HOW == "powers-off" and presses == 3:
            os._exit(0)
    if name == "quit":
        os._exit(0)
    return {}


def serve(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        while True:
            client, _ = server.accept()
            client.sendall(b'{"QMP": {}}\n')
            for line in client.makefile("rb"):
                request = json.loads(line)
                client.sendall(json.dumps({"return": answer(request)}).encode() + b"\n")
                if HOW == "crashes" and request["execute"] == "ringbuf-read":
                    os.kill(os.getpid(), signal.SIGKILL)
                if HOW == "lingers" and request["execute"] == "ringbuf-read":
                    client.shutdown(socket.SHUT_RDWR)
                    time.sleep(3)
                    os._exit(0)
                if HOW == "lost" and request["execute"] == "ringbuf-read":
                    client.sendall(b'{"event": "STOP"}\n')


if "isa-debug-exit,iobase=0xf4,iosize=4" in sys.argv:
    sys.exit(1)
record(" ".join(sys.argv))
for word in sys.argv:
    if word.startswith("socket,"):
        path = dict(part.split("=", 1) for part in word.split(",")[1:])["path"]
        threading.Thread(target=serve, args=(path,)).start()
