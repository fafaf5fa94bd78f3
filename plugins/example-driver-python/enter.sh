#!/bin/sh
# The last step into a cell, within its namespaces: enter.sh HOSTNAME PROGRAM [ARGUMENT]…
# makes the root file system of the cell the only one in sight, and becomes its first process.
set -e
umask 022
hostname=$1
shift
# The current directory is that of the cell. Its path leads through directories of root alone.
root=/mnt
mount --no-canonicalize --bind . "$root"
mount --rbind /usr "$root/usr"
mount -o remount,bind,ro "$root/usr"
mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
for device in null zero full random urandom; do
    : > "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
hostname "$hostname"
cd "$root"
pivot_root . .
umount -l .
cd /
mkdir -p /var/log
# Its output counts towards its disk.
exec "$@" >> /var/log/console 2>&1
