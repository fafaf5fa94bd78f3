#!/bin/bash
# Starts a cluster of Incus with OVN on this machine, without the kernel's modules openvswitch and geneve.
# MEMBERS=3 starts three members instead of two. Run it as root on Debian 12; prove.sh comes next.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
. "$here/lib.sh"

PACKAGES=(ovn-central ovn-host openvswitch-switch dnsmasq-base attr rsync btrfs-progs nftables ethtool busybox-static openssl)
BACKPORTS=(incus-base incus-client)
# Allowing what is public is safer than dropping private ranges, which would drop the owner's own network.
PUBLIC=1.0.0.0-9.255.255.255,11.0.0.0-100.63.255.255,100.128.0.0-126.255.255.255,128.0.0.0-169.253.255.255
PUBLIC+=,169.255.0.0-172.15.255.255,172.32.0.0-192.167.255.255,192.169.0.0-223.255.255.255
RULES='{"name": "'$ACL'", "ingress": [{"action": "allow", "state": "enabled"}], "egress": [
    {"action": "drop", "destination": "'$UPLINK.254'", "state": "enabled"},
    {"action": "allow", "destination": "@internal", "state": "enabled"},
    {"action": "allow", "destination": "'$PUBLIC'", "state": "enabled"}]}'
# The arguments of every daemon of OVS and OVN.
DAEMON=(-vconsole:off --detach --pidfile --log-file)

# As Wharf's own programs, it installs alone: a second update fails while one runs.
install_packages() (
    exec 9>/run/wharf-packages.lock
    flock 9
    local all=("${PACKAGES[@]}" "${BACKPORTS[@]}") installed mirror policy=/usr/sbin/policy-rc.d
    local install=(apt-get install -y -q=2 --no-install-recommends)
    export DEBIAN_FRONTEND=noninteractive
    installed=$(dpkg -s "${all[@]}" 2>/dev/null | grep -c '^Status: install ok installed') || true
    [ "$installed" != "${#all[@]}" ] || exit 0
    apt-get update -q=2
    if ! apt-cache show incus-base >/dev/null 2>&1; then
        # The backports, on the mirror that the machine uses.
        mirror=$(apt-get indextargets --format "\$(CODENAME) \$(REPO_URI)" | awk '$1 == "bookworm" && !n++ { print $2 }')
        [ -n "$mirror" ] || fail "no mirror of Debian 12 in /etc/apt"
        printf 'Types: deb\nURIs: %s\nSuites: bookworm-backports\nComponents: main\nSigned-By: %s\n' "$mirror" \
            /usr/share/keyrings/debian-archive-keyring.gpg >/etc/apt/sources.list.d/wharf-backports.sources
        apt-get update -q=2
    fi
    # The packages' services are not started: the lab has its own.
    if [ ! -e "$policy" ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' | install -m 755 /dev/stdin "$policy"
    fi
    "${install[@]}" "${PACKAGES[@]}" >/dev/null
    "${install[@]}" -t bookworm-backports "${BACKPORTS[@]}" >/dev/null
)

# Starts a daemon; its files are NAME.pid and NAME.log: start NAME PROGRAM...
start() {
    setsid nohup "${@:2}" >>"$1.log" 2>&1 </dev/null &
    echo $! >"$1.pid"
}

make_namespace() {
    ip netns add "$1"
    ip -n "$1" link set lo up
}

# A NIC of a namespace with a cable to the router: connect NAMESPACE NIC NAME_AT_ROUTER
connect() {
    ip -n "$WORLD" link add "$3" up type veth peer name "$2" netns "$1"
    ip -n "$1" link set "$2" up
    whole_checksums "$WORLD" "$3"
    whole_checksums "$1" "$2"
}

# The login host is the uplink's router: it maps each published port to the port's own address, for users and
# for programs of its own.
make_login_host() {
    local i chain map=
    for ((i = 0; i < N_PORTS; i++)); do
        map+="$((FIRST_PORT + i)) : $UPLINK.$((FIRST_PUBLISHED + i)), "
    done
    in_world nft add table ip login
    in_world nft add map ip login ports "{ type inet_service : ipv4_addr; elements = { ${map%, } }; }"
    in_world nft add chain ip login published '{ type nat hook prerouting priority dstnat; }'
    in_world nft add chain ip login own '{ type nat hook output priority -100; }'
    for chain in published own; do
        in_world nft add rule ip login "$chain" ip daddr "$LOGIN_HOST" dnat to tcp dport map @ports
    done
}

make_world() {
    local link address
    make_namespace "$WORLD"
    # A bridge of the router is one link of all members.
    for link in "cluster $CLUSTER" "tunnel $TUNNEL" "uplink $UPLINK"; do
        ip -n "$WORLD" link add "${link% *}" up type bridge
        ip -n "$WORLD" addr add "${link#* }.254/24" dev "${link% *}"
        whole_checksums "$WORLD" "${link% *}"
    done
    for address in "${PRIVATE_HOSTS[@]}" "$PUBLIC_HOST" "$LOGIN_HOST"; do
        ip -n "$WORLD" addr add "$address/32" dev lo
    done
    in_world sysctl -qw net.ipv4.ip_forward=1
    make_namespace "$VISITOR"
    connect "$VISITOR" eth0 visitor
    ip -n "$WORLD" addr add "$VISITOR_NET.254/24" dev visitor
    ip -n "$VISITOR" addr add "$VISITOR_NET.2/24" dev eth0
    ip -n "$VISITOR" route add default via "$VISITOR_NET.254"
    make_login_host
    start "$LAB/greeter" ip netns exec "$WORLD" busybox nc -ll -p 80 -e "$here/init.sh" world
}

start_ovn_central() {
    local central=$LAB/central
    ovsdb-tool create "$central/nb.db" /usr/share/ovn/ovn-nb.ovsschema
    ovsdb-tool create "$central/sb.db" /usr/share/ovn/ovn-sb.ovsschema
    with_ovs "$central" in_world ovsdb-server "${DAEMON[@]}" --remote=punix:ovnnb_db.sock --remote=punix:ovnsb_db.sock \
        --remote="ptcp:$OVN_PORT:$OVN_HOST" "$central/nb.db" "$central/sb.db"
    with_ovs "$central" in_world ovn-nbctl init
    with_ovs "$central" in_world ovn-sbctl init
    with_ovs "$central" in_world ovn-northd "${DAEMON[@]}"
}

# OVS and OVN of a member. The NIC eth1 is a port of br-phy, which has the tunnels' address: OVS itself routes
# the tunnels of the userspace datapath.
start_ovs() {
    local member=$1 directory=$LAB/m$1
    ovsdb-tool create "$directory/ovs.db" /usr/share/openvswitch/vswitch.ovsschema
    ovs_on "$member" ovsdb-server "${DAEMON[@]}" --remote=punix:db.sock "$directory/ovs.db"
    ovs_on "$member" ovs-vsctl --no-wait init -- set open . "external_ids:system-id=m$member" \
        "external_ids:hostname=m$member" "external_ids:ovn-remote=tcp:$OVN_HOST:$OVN_PORT" \
        external_ids:ovn-encap-type=geneve "external_ids:ovn-encap-ip=$TUNNEL.$member" \
        external_ids:ovn-bridge-datapath-type=netdev
    # The userspace conntrack of OVS 3.1.0 was seen to abort; the monitor starts it again.
    ovs_on "$member" ovs-vswitchd "${DAEMON[@]}" --monitor
    ovs_on "$member" ovs-vsctl add-br br-phy -- set bridge br-phy datapath_type=netdev -- add-port br-phy eth1
    ovs_on "$member" ovn-controller "${DAEMON[@]}"
}

# Incus of a member, in a mount namespace with the sysfs of the member's network, and with a /run/openvswitch of
# its own, where Incus looks for OVS. The cgroups stay those of the machine.
start_incus() {
    local member=$1 directory=$LAB/m$1
    INCUS_DIR=$directory/incus start "$directory/incusd" nsenter --net="/run/netns/$NAMESPACE$member" \
        unshare -m --propagation private bash -ec "
        mount --rbind /sys/fs/cgroup $directory/cgroup
        mount -t sysfs sysfs /sys
        mount --rbind $directory/cgroup /sys/fs/cgroup
        mkdir -p /run/openvswitch
        mount --bind $directory/run /run/openvswitch
        exec /usr/libexec/incus/incusd --group root"
    incus_on "$member" admin waitready --timeout=60
}

# A member with three NICs: eth0 for the cluster, eth1 for tunnels, eth2 for the uplink.
start_member() {
    local member=$1 directory=$LAB/m$1 namespace=$NAMESPACE$1 link nic=0
    mkdir -p "$directory"/{incus,run,cgroup}
    make_namespace "$namespace"
    for link in cluster tunnel uplink; do
        connect "$namespace" "eth$((nic++))" "$link$member"
        ip -n "$WORLD" link set "$link$member" master "$link"
    done
    ip -n "$namespace" addr add "$CLUSTER.$member/24" dev eth0
    ip -n "$namespace" route add default via "$CLUSTER.254"
    start "$directory/greeter" ip netns exec "$namespace" busybox nc -ll -p 80 -e "$here/init.sh" "member$member"
    start_ovs "$member"
    start "$directory/watch" bash "$here/watch.sh" "$member"
    start_incus "$member"
}

form_cluster() {
    local member token
    incus_on 1 admin init --preseed <<END
config: {core.https_address: "$CLUSTER.1:8443", network.ovn.northbound_connection: "tcp:$OVN_HOST:$OVN_PORT"}
cluster: {enabled: true, server_name: m1}
storage_pools: [{name: default, driver: btrfs, config: {size: $POOL_SIZE}}]
END
    for ((member = 2; member <= MEMBERS; member++)); do
        token=$(incus_on 1 cluster add "m$member" -q | tail -1)
        incus_on "$member" admin init --preseed <<<"cluster: {enabled: true, server_name: m$member, \
            server_address: \"$CLUSTER.$member:8443\", cluster_token: $token, \
            member_config: [{entity: storage-pool, name: default, key: size, value: $POOL_SIZE}]}"
    done
}

# The operator's part: the uplink, the project, the ACL, and the restricted certificate.
prepare_cluster() {
    local member
    for ((member = 1; member <= MEMBERS; member++)); do
        incus_on 1 network create up0 --type=physical --target "m$member" parent=eth2
    done
    incus_on 1 network create up0 --type=physical "ipv4.gateway=$UPLINK.254/24" \
        "ipv4.ovn.ranges=$NETWORK_ADDRESSES" "ipv4.routes=$PUBLISH_CIDR" "dns.nameservers=$UPLINK.254"
    incus_on 1 project create "$PROJECT" -c features.images=true -c features.profiles=true \
        -c features.storage.volumes=true -c features.networks=true -c restricted=true \
        -c restricted.cluster.target=allow -c restricted.devices.disk=managed -c restricted.devices.nic=managed \
        -c restricted.snapshots=allow \
        -c restricted.networks.uplinks=up0 -c "restricted.networks.subnets=up0:$PUBLISH_CIDR"
    incus_on 1 query -X POST -d "$RULES" "/1.0/network-acls?project=$PROJECT"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:secp384r1 -days 3650 -nodes \
        -keyout "$LAB/wharf/client.key" -out "$LAB/wharf/client.crt" -subj /CN=wharf 2>/dev/null
    incus_on 1 config trust add-certificate "$LAB/wharf/client.crt" --restricted --projects "$PROJECT"
    wharf remote add lab "https://$CLUSTER.1:8443" --accept-certificate
}

# A small image: busybox, the address of /etc/wharf/net, and a greeting on port 22.
import_image() {
    local root=$LAB/image/rootfs applet
    mkdir -p "$root"/{bin,sbin,etc/wharf,proc,sys,dev,run,tmp,root}
    cp /bin/busybox "$root/bin/"
    for applet in $(busybox --list); do
        [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
    done
    echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
    install "$here/init.sh" "$root/sbin/init"
    printf 'architecture: x86_64\ncreation_date: 1764000000\n' >"$LAB/image/metadata.yaml"
    tar -C "$LAB/image" -czf "$LAB/image.tar.gz" metadata.yaml rootfs
    incus_on 1 image import "$LAB/image.tar.gz" --alias base --project "$PROJECT"
}

[ "$(id -u)" = 0 ] || fail "up.sh needs root"
[ ! -e "$LAB" ] || fail "$LAB exists: run down.sh first"
install_packages
for table in /etc/subuid /etc/subgid; do
    grep -qs '^root:' "$table" || echo root:1000000:1000000000 >>"$table"
done
mkdir -p "$LAB/central" "$LAB/wharf"
make_world
start_ovn_central
for ((member = 1; member <= MEMBERS; member++)); do
    start_member "$member"
done
form_cluster
prepare_cluster
import_image
