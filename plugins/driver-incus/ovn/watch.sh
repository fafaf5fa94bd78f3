#!/bin/bash
# Keeps one member working on the userspace datapath: watch.sh MEMBER. A kernel with the module openvswitch
# needs none of it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

member=$1
namespace=$NAMESPACE$member
declare -A treated=()

# Incus makes its bridges for the kernel's datapath, and waits 5 s for their ports.
correct_bridges() {
    local bridge
    for bridge in $(ovs_on "$member" ovs-vsctl -t 3 --bare --columns=name find bridge 'datapath_type=""'); do
        ovs_on "$member" ovs-vsctl -t 3 set bridge "$bridge" datapath_type=netdev
    done
    for bridge in $(ip -n "$namespace" -o link show |
        sed -nE 's/^[0-9]+: (incusovn[0-9]+|br-int|br-phy): .*state DOWN.*/\1/p'); do
        ip -n "$namespace" link set "$bridge" up
    done
    # The monitor of ovs-vswitchd starts it again after a crash, without the addresses of its ports.
    if ! ip -n "$namespace" -4 addr show br-phy | grep -q inet; then
        ip -n "$namespace" addr add "$TUNNEL.$member/24" dev br-phy
        whole_checksums "$namespace" br-phy
    fi
}

correct_links() {
    local link
    # Lines such as `7: veth1@if6: …`; an index is never used twice.
    for link in $(ip -n "$namespace" -o link show type veth | sed -E 's/^([0-9]+): ([^@:]+).*/\1:\2/'); do
        [ -n "${treated[$link]:-}" ] || whole_checksums "$namespace" "${link#*:}" && treated[$link]=1
    done
}

correct_instances() {
    local monitor init key
    for monitor in $(pgrep -f "^\[lxc monitor\] $LAB/m$member/"); do
        for init in $(pgrep -P "$monitor"); do
            key=$init.$(stat -L -c %i "/proc/$init/ns/net")
            [ -n "${treated[$key]:-}" ] || nsenter --net="/proc/$init/ns/net" ethtool -K eth0 tx off && treated[$key]=1
        done
    done
}

while sleep 0.2; do
    # A link or an instance may go between two commands: the next round looks again.
    correct_bridges || true
    correct_links || true
    correct_instances || true
done
