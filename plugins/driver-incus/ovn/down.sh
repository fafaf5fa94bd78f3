#!/bin/bash
# Removes the lab, except packages. Ends only processes of the lab's namespaces and directory.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

lab_namespaces() {
    ip netns list | grep -oE "^${NAMESPACE}[a-z0-9]+" || true
}

lab_processes() {
    pgrep -f "^\[lxc monitor\] $LAB/" || true
    lab_namespaces | xargs -r -n 1 ip netns pids
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
    [ ! -e "$file" ] || end "$(pgrep -F "$file" -f 'watch\.sh|incusd')"
done
mapfile -t processes < <(lab_processes)
end "${processes[@]}"
lab_namespaces | xargs -r -n 1 ip netns del
rmdir /run/openvswitch 2>/dev/null || true
find /sys/fs/cgroup -depth -type d -path "*/lxc.*.${PROJECT}_*" -exec rmdir {} + 2>/dev/null || true
rm -rf --one-file-system "$LAB"

left=$(lab_namespaces; lab_processes; pgrep -af "$LAB" || true; grep "$LAB" /proc/mounts || true)
[ -z "$left" ] || fail "left: $left"
