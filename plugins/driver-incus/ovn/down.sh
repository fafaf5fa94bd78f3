#!/bin/bash
# Removes the lab, except packages. Ends only processes of the lab's namespaces and directory.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

lab_namespaces() {
    ip netns list | grep -oE "^${NAMESPACE}[a-z0-9]+" || true
}

lab_processes() {
    local namespace
    pgrep -f "^\[lxc monitor\] $LAB/" || true
    for namespace in $(lab_namespaces); do
        ip netns pids "$namespace"
    done
}

# Sends TERM to processes, and KILL to those that are left after 10 s.
end() {
    kill "$@" 2>/dev/null || return 0
    for _ in {1..100}; do
        kill -0 "$@" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -KILL "$@" 2>/dev/null || true
}

# Instances end before their daemon, and the daemon before its network.
for monitor in $(pgrep -f "^\[lxc monitor\] $LAB/"); do
    end "$(pgrep -P "$monitor")"
done
for file in "$LAB"/m*/watch.pid "$LAB"/m*/incusd.pid; do
    [ ! -e "$file" ] || end "$(<"$file")"
done
mapfile -t processes < <(lab_processes)
end "${processes[@]}"
for namespace in $(lab_namespaces); do
    ip netns del "$namespace"
done
rmdir /run/openvswitch /run/ovn 2>/dev/null || true
find /sys/fs/cgroup -depth -type d -path "*/lxc.*.${PROJECT}_*" -exec rmdir {} + 2>/dev/null || true
rm -rf --one-file-system "$LAB"

left=$(lab_namespaces; lab_processes; pgrep -af "$LAB" || true; grep "$LAB" /proc/mounts || true)
[ -z "$left" ] || fail "left: $left"
echo "nothing is left"
