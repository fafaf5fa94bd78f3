"""QEMU's monitor protocol: JSON lines on a unix socket, one client at a time."""

import json
import select
import socket

from .log import Failure

# QEMU answers at once; a machine under load takes its time.
ANSWER_SECONDS = 20


# There is no QEMU to speak to, not yet or no more.
NOT_UP = (ConnectionError, FileNotFoundError)


class Monitor:
    """A connection. Events that arrive on the way are kept in `events`."""

    def __init__(self, path):
        self.events = []
        self._rest = b""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(ANSWER_SECONDS)
        try:
            self._socket.connect(str(path))
            self._read()
            self.execute("qmp_capabilities")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Lets the next client in."""
        self._socket.close()

    def fileno(self):
        """To wait for events."""
        return self._socket.fileno()

    def execute(self, command, **arguments):
        """Gives the command's result."""
        request = {"execute": command, "arguments": arguments}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        while True:
            message = self._read()
            if "return" in message:
                return message["return"]
            if "error" in message:
                raise Failure(f"{command}: {message['error'].get('desc')}")

    def human(self, line):
        """A command that has no form in JSON. Its errors are in the text, too."""
        return self.execute("human-monitor-command", **{"command-line": line}).strip()

    def take_events(self):
        """Names of the events that arrived since the last call."""
        while b"\n" in self._rest or select.select([self._socket], [], [], 0)[0]:
            self._read()
        events, self.events = self.events, []
        return [event["event"] for event in events]

    def has_events(self):
        """Whether some arrived with an answer, so that waiting for the socket would miss them."""
        return bool(self.events) or b"\n" in self._rest

    def _read(self):
        while b"\n" not in self._rest:
            try:
                chunk = self._socket.recv(65536)
            except TimeoutError as error:
                raise Failure(f"QEMU does not answer within {ANSWER_SECONDS} s") from error
            if not chunk:
                raise ConnectionError("QEMU closed the connection")
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        message = json.loads(line)
        if "event" in message:
            self.events.append(message)
        return message
