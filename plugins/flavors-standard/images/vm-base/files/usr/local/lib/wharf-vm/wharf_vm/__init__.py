"""A virtual machine in a container, with the commands for its driver.

In reading order: main (the commands), run (the life of the machine), command (QEMU's arguments),
seed (credentials for the first boot), disk, kvm, ports, qmp, paths, settings, log.
"""
