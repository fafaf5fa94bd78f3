#!/bin/sh
# Runs the proof on this machine, which needs root and NVIDIA's driver, and no network. Everything else is in
# the archives beside this script. The proof has its own mounts, processes and network, and leaves nothing.
#
#   sh run.sh [--out DIRECTORY] [--limit SECONDS] [--fake]
#
# DIRECTORY gets report.md and log; it is the current directory by default. --fake rehearses on a machine
# without a GPU.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=$PWD limit=240 fake=
while [ $# -gt 0 ]; do
    case $1 in
        --out) out=$2; shift ;;
        --limit) limit=$2; shift ;;
        --fake) fake=--fake ;;
        *) sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done
[ "$(id -u)" = 0 ] || { echo 'The proof needs root.'; exit 1; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d "${TMPDIR:-/var/tmp}/wharf-gpu-proof.XXXXXX")
chmod 0755 "$work"
root=$work/root
began=$(date +%s)

say() { echo "[$(($(date +%s) - began)) s] $*"; }

# Unpacks with xz, or with Python.
unpack() {
    if command -v xz >/dev/null; then
        xz -dc "$1"
    else
        python3 -c 'import lzma, shutil, sys
shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer, 1 << 20)' "$1"
    fi | tar -xp --numeric-owner -C "$root"
}

# The first file that exists, without links.
first() {
    for file; do
        [ ! -f "$file" ] || { readlink -f "$file"; return; }
    done
}

# Podman moves processes out of the root group.
control_groups() {
    find /sys/fs/cgroup -depth -type d \( -path '*pod*' -o -name init \) 2>/dev/null || true
}

# Runs in new namespaces. The new root becomes the root, because the kernel makes no user namespaces in a
# chroot. $1: the new root; $2, $3: the driver's directory and program, or nothing; $4: for the report.
ENTER='
root=$1 lib=$root/usr/lib/x86_64-linux-gnu
own() {
    program=$1
    shift
    "$lib/ld-linux-x86-64.so.2" --library-path "$lib" "$root/usr/$program" "$@"
}
own bin/mount --bind "$root" "$root"
own bin/mount -t proc proc "$root/proc"
own bin/mount -t sysfs sysfs "$root/sys"
own bin/mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
own bin/mount --rbind /dev "$root/dev"
own bin/mount -t tmpfs -o mode=755 run "$root/run"
mkdir -p "$root/out" "$root/mnt/outside" "$root/usr/local/nvidia/bin" "$root/usr/local/nvidia/lib64"
own bin/mount --bind "$4" "$root/out"
if [ -n "$2" ]; then
    own bin/mount --bind "$2" "$root/usr/local/nvidia/lib64"
fi
if [ -n "$3" ]; then
    touch "$root/usr/local/nvidia/bin/nvidia-smi"
    own bin/mount --bind "$3" "$root/usr/local/nvidia/bin/nvidia-smi"
fi
cd "$root"
own sbin/pivot_root . mnt/outside
shift 4
# This shell stays, as the parent of processes that lose theirs.
exec /usr/sbin/chroot . /bin/sh -c "umount -l /mnt/outside && ip link set lo up && \
    /opt/wharf/target/release/wharf-gpu-proof --report /out/report.md $*; exit \$?"
'

prove() {
    say "Unpacking into $work"
    mkdir "$root"
    for archive in "$here"/*.tar.xz; do
        unpack "$archive"
    done
    chmod 0755 "$root"
    cached=$(ldconfig -p 2>/dev/null | sed -n 's/^[[:space:]]*libcuda\.so\.1 (.*x86-64) => //p')
    library=$(first $cached /usr/local/nvidia/lib64/libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.1 \
        /usr/lib64/libcuda.so.1)
    smi=$(first "$(command -v nvidia-smi || true)" /usr/local/nvidia/bin/nvidia-smi)
    say "The driver: ${library:-none}, ${smi:-no nvidia-smi}"
    for cdi in /etc/cdi/* /var/run/cdi/*; do
        [ ! -f "$cdi" ] || say "The machine has $cdi, which the proof does not use."
    done
    lib=$root/usr/lib/x86_64-linux-gnu
    code=0
    PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root WHARF_WORKSPACE=/opt/wharf \
        WHARF_BIN=/opt/wharf/target/release/wharf timeout -k 5 "$limit" \
        "$lib/ld-linux-x86-64.so.2" --library-path "$lib" "$root/usr/bin/unshare" \
        --mount --propagation private --net --ipc --pid --fork --kill-child \
        sh -euc "$ENTER" sh "$root" "${library:+${library%/*}}" "$smi" "$out" $fake || code=$?
    if [ $code -ge 124 ]; then
        say "The proof was killed ($code)."
        for log in "$root"/opt/wharf/target/gpu-proof-*/wharf.log \
            "$root"/opt/wharf/target/gpu-proof-*/engine/engine.log; do
            [ ! -f "$log" ] || { echo "── The end of $log"; tail -n 80 "$log"; }
        done
    fi
    if [ $code -ne 0 ]; then
        echo '── The end of the kernel log'
        dmesg 2>/dev/null | tail -n 30 || true
    fi
    say "The proof ended with $code."
    echo $code >"$work/code"
}

remove() {
    rm -rf --one-file-system "$work"
    rm -f /dev/wharf-gpu-proof-*
    control_groups | grep -vxFf "$before" | xargs -r rmdir 2>/dev/null || true
    rm -f "$before"
}

before=$(mktemp)
control_groups >"$before"
trap remove EXIT
trap 'exit 1' INT TERM HUP
prove 2>&1 | tee "$out/log"
exit "$(cat "$work/code" 2>/dev/null || echo 1)"
