"""A virtual machine in a container, and what its driver asks of it.

In reading order: main (the commands), run (the life of the machine), command (QEMU's arguments),
seed (what the first boot gets), disk, kvm, ports, qmp, paths, settings, log.
"""
