"""QEMU's monitor protocol: JSON lines on a unix socket, one client at a time."""

import json
import select
import socket

from .log import Failure

# QEMU answers immediately, except under load.
ANSWER_SECONDS = 20


# QEMU is not running, either not yet or no longer.
NOT_UP = (ConnectionError, FileNotFoundError)


class Monitor:
    """A connection. Events that arrive before an answer are kept in `events`."""

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
        """Closes the connection, which admits the next client."""
        self._socket.close()

    def fileno(self):
        """Returns the file descriptor, for waiting on events."""
        return self._socket.fileno()

    def execute(self, command, **arguments):
        """Runs a command and returns its result."""
        request = {"execute": command, "arguments": arguments}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        while True:
            message = self._read()
            if "return" in message:
                return message["return"]
            if "error" in message:
                raise Failure(f"{command}: {message['error'].get('desc')}")

    def human(self, line):
        """Runs a command without a JSON form. The returned text may be an error message."""
        return self.execute("human-monitor-command", **{"command-line": line}).strip()

    def take_events(self):
        """Returns the names of the events since the last call."""
        while b"\n" in self._rest or select.select([self._socket], [], [], 0)[0]:
            self._read()
        events, self.events = self.events, []
        return [event["event"] for event in events]

    def has_events(self):
        """Returns whether events arrived with an answer, which a wait on the socket would miss."""
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
