# shellcheck shell=bash disable=SC2034
# Names, addresses and functions of the lab. Everything is in the directory LAB and in network namespaces whose
# names begin with NAMESPACE. A member's number, from 1, is the last byte of its addresses.

LAB=/var/lib/wharf-ovn-lab
NAMESPACE=wharf-ovn-
MEMBERS=${MEMBERS:-2}
PROJECT=ovnlab
ACL=wharf
POOL_SIZE=20GiB # of each member, sparse; btrfs enforces the disk sizes of instances
WORLD=${NAMESPACE}world     # router of all links, with OVN's databases and the destinations outside
VISITOR=${NAMESPACE}visitor # a user in a network of their own, behind the router
VISITOR_NET=10.200.0
# First three bytes of the links; the router has 254 in each.
CLUSTER=10.87.0
TUNNEL=10.87.1
UPLINK=198.18.40
NETWORK_ADDRESSES=$UPLINK.10-$UPLINK.99 # one for each network
PUBLISH_CIDR=$UPLINK.128/26             # one for each published port
FIRST_PUBLISHED=128
FIRST_PORT=20000
N_PORTS=64
LOGIN_HOST=203.0.113.1
PUBLIC_HOST=203.0.113.10
PRIVATE_HOSTS=(169.254.169.254 10.99.0.1 172.16.5.1 192.168.9.1 100.64.0.1) # the router answers there
OVN_HOST=$CLUSTER.254 # one server has both of OVN's databases
OVN_PORT=6641
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
export INCUS_CONF=$LAB/client # not the caller's home

fail() {
    echo "$*" >&2
    exit 1
}

in_world() { ip netns exec "$WORLD" "$@"; }

# Runs a program of OVS or OVN with its sockets, pid file and log in a directory: with_ovs DIRECTORY PROGRAM...
with_ovs() { OVS_RUNDIR=$1 OVN_RUNDIR=$1 OVS_LOGDIR=$1 OVN_LOGDIR=$1 "${@:2}"; }

# Runs a program of OVS or OVN on a member.
ovs_on() { with_ovs "$LAB/m$1/run" ip netns exec "$NAMESPACE$1" "${@:2}"; }

# Runs Incus' client as the operator on a member.
incus_on() { INCUS_DIR=$LAB/m$1/incus ip netns exec "$NAMESPACE$1" incus "${@:2}"; }

# OVS reads veths as packet sockets, and its conntrack refuses the partial checksums of offloading.
whole_checksums() { ip netns exec "$1" ethtool -K "$2" tx off >/dev/null; }

# Runs Incus' client with Wharf's restricted certificate; the remote `lab` is member 1.
wharf() { INCUS_CONF=$LAB/wharf in_world incus "$@"; }
