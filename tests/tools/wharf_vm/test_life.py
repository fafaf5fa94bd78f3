"""The life of a machine, from the container's start to its end."""

import signal

from machine import SECRET, MachineTest


class Life(MachineTest):
    def test_a_stop_presses_the_button_until_the_machine_is_off(self):
        process = self.start("powers-off")
        self.wait_until(lambda: not any(self.first_boot.iterdir()))
        process.send_signal(signal.SIGTERM)
        code, said = self.end(process)
        self.assertEqual(code, 0, said)
        self.assertEqual(self.recorded().count("system_powerdown"), 3)
        self.assertNotIn("quit", self.recorded())

    def test_an_unresponsive_machine_is_turned_off_at_the_deadline(self):
        process = self.start("deaf")
        self.wait_until(lambda: not any(self.first_boot.iterdir()))
        process.send_signal(signal.SIGTERM)
        code, said = self.end(process)
        self.assertEqual(code, 0, said)
        self.assertIn("turning it off", said)
        self.assertEqual(self.recorded()[-1], "quit")

    def test_a_crash_is_an_error(self):
        code, said = self.end(self.start("crashes"))
        self.assertEqual(code, 128 + signal.SIGKILL, said)

    def test_a_slow_end_after_power_off_is_no_error(self):
        code, said = self.end(self.start("lingers"))
        self.assertEqual(code, 0, said)

    def test_an_internal_error_ends_the_machine(self):
        code, said = self.end(self.start("lost"))
        self.assertEqual(code, 1, said)
        self.assertIn("internal error", said)

    def test_there_is_one_first_boot_and_arguments_have_no_secrets(self):
        for credentials in (2, 0):
            self.record.unlink(missing_ok=True)
            process = self.start("powers-off")
            self.wait_until(lambda: "qmp_capabilities" in self.recorded())
            self.wait_until(lambda: not any(self.first_boot.iterdir()))
            process.send_signal(signal.SIGTERM)
            code, said = self.end(process)
            self.assertEqual(code, 0, said)
            started = self.recorded()[0]
            self.assertEqual(started.count("type=11"), credentials + bool(credentials))
            self.assertNotIn(SECRET, started + said)
            self.assertFalse((self.state / "machine/run/credentials").exists())

    def test_a_wrong_setting_is_named(self):
        self.environment["WHARF_VM_DISK_GIB"] = "-4"
        code, said = self.end(self.start("deaf"))
        self.assertEqual(code, 1)
        self.assertIn("WHARF_VM_DISK_GIB is '-4'", said)


class Ports(MachineTest):
    def kept(self):
        return (self.state / "ports").read_text().split()

    def test_set_ports_applies_to_a_running_machine(self):
        self.assertEqual(self.end(self.start("deaf", "set-ports", "8443")), (0, ""))
        self.assertEqual(self.kept(), ["22", "8443"])
        process = self.start("deaf")
        self.wait_until(lambda: not any(self.first_boot.iterdir()))
        for words, code in ((["8080", "443"], 0), ([], 0), (["99999"], 1), (["22"], 0)):
            ended, said = self.end(self.start("deaf", "set-ports", *words))
            self.assertEqual(ended, code, said)
            if code:
                self.assertIn("'99999' is no port", said)
        self.assertEqual(self.kept(), ["22"])
        process.send_signal(signal.SIGTERM)
        self.end(process)
