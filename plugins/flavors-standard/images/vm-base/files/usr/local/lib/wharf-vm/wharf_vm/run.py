"""Supervision of the machine, from the container's start to its end."""

import base64
import os
import select
import shutil
import signal
import subprocess
import time

from . import command, disk, kvm, paths, ports, seed
from .log import Failure, say
from .qmp import NOT_UP, Monitor

# QEMU opens its sockets within a tenth of a second on an idle node.
START_SECONDS = 60
# The machine ignores the power button until its logind is up.
POWERDOWN_EVERY_SECONDS = 1.5
# Time until the machine is turned off. The engine must wait longer before it kills.
STOP_SECONDS = 25
# Time from the end of QEMU's monitor, which it closes first, to the end of QEMU.
END_SECONDS = 30
# Time from turning off to killing.
QUIT_SECONDS = 2
READY_EVERY_SECONDS = 0.25
IDLE_SECONDS = 60


class Machine:
    """A running QEMU and its pending steps."""

    def __init__(self, settings):
        self._stop_at = None
        self._next_press = 0.0
        self._monitor = None
        self._ends_by = None
        self._failed = False
        self._wake, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        shutil.rmtree(paths.RUN, ignore_errors=True)
        paths.RUN.mkdir(mode=0o700)
        disk.ensure(settings.disk_gib)
        usable, why = kvm.probe()
        acceleration = "kvm" if usable else "tcg"
        paths.ACCELERATION.write_text(acceleration + "\n")
        say(f"acceleration: {acceleration} ({why})")
        credentials = seed.write(settings.hostname)
        self._first_boot = bool(credentials)
        self._started = time.monotonic()
        self._qemu = subprocess.Popen(
            command.qemu(settings, usable, credentials), stdin=subprocess.DEVNULL
        )

    def run(self):
        """Waits for the end; returns the container's exit code."""
        while self._qemu.poll() is None:
            try:
                pause = self._step()
            except NOT_UP:
                self._monitor = None
                self._ends_by = self._ends_by or time.monotonic() + END_SECONDS
                pause = 0.05
            except Failure as failure:
                self._fail(str(failure))
                pause = 0.1
            self._sleep(pause)
        seed.forget_copies()
        code = self._qemu.returncode
        if code:
            say(f"QEMU ended with {code}")
        if self._failed:
            return 1
        return code if code >= 0 else 128 - code

    def _step(self):
        """Performs the steps that are due; returns the time until the next."""
        if self._stop_at is not None and time.monotonic() > self._stop_at + QUIT_SECONDS:
            say("QEMU does not end: killing it")
            self._qemu.kill()
            return 1
        if self._ends_by is not None:
            if time.monotonic() > self._ends_by:
                self._fail(f"QEMU closed its monitor and did not end within {END_SECONDS} s")
            return 0.05
        if self._monitor is None:
            return self._connect()
        if "STOP" in self._monitor.take_events():
            status = self._monitor.execute("query-status")["status"]
            if status == "internal-error":
                self._fail("the virtual processor met an internal error")
        pause = IDLE_SECONDS
        if self._first_boot:
            self._look_whether_ready()
            pause = READY_EVERY_SECONDS
        if self._stop_at is not None:
            pause = min(pause, self._end())
        return pause

    def _connect(self):
        try:
            self._monitor = Monitor(paths.SUPERVISION)
        except NOT_UP:
            if time.monotonic() > self._started + START_SECONDS:
                self._fail(f"QEMU does not answer within {START_SECONDS} s of its start")
            return 0.05
        # QEMU has read the credentials.
        seed.forget_copies()
        try:
            ports.apply()
        except Failure as failure:
            # The driver repeats the request and gets this error again.
            say(str(failure))
        return 0

    def _look_whether_ready(self):
        said = self._monitor.execute("ringbuf-read", device=command.READY, size=64, format="base64")
        if b"READY" in base64.b64decode(said):
            say(f"ready {time.monotonic() - self._started:.1f} s after its start")
            seed.forget()
            self._first_boot = False

    def _end(self):
        """Presses the power button, and turns the machine off at the deadline."""
        now = time.monotonic()
        if now > self._stop_at:
            say(f"not down within {STOP_SECONDS} s: turning it off")
            self._monitor.execute("quit")
            return 0.5
        if now >= self._next_press:
            self._monitor.execute("system_powerdown")
            self._next_press = now + POWERDOWN_EVERY_SECONDS
        return max(self._next_press - now, 0.05)

    def _fail(self, why):
        say(f"{why}: killing QEMU")
        self._failed = True
        self._qemu.kill()

    def _stop(self, *_):
        if self._stop_at is None:
            say("asked to stop")
            self._stop_at = time.monotonic() + STOP_SECONDS

    def _sleep(self, seconds):
        """Waits for the timeout, a signal or an event of QEMU."""
        sources = [self._wake]
        if self._monitor is not None:
            sources.append(self._monitor)
            seconds = 0 if self._monitor.has_events() else seconds
        ready, _, _ = select.select(sources, [], [], seconds)
        if self._wake in ready:
            os.read(self._wake, 64)
