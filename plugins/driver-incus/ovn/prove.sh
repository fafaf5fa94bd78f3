#!/bin/bash
# Proves what the OVN mode needs, with the restricted certificate. Run it once after up.sh.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# Allowing what is public is safer than dropping private ranges, which would drop the owner's own network.
PUBLIC=1.0.0.0-9.255.255.255,11.0.0.0-100.63.255.255,100.128.0.0-126.255.255.255,128.0.0.0-169.253.255.255
PUBLIC+=,169.255.0.0-172.15.255.255,172.32.0.0-192.167.255.255,192.169.0.0-223.255.255.255
ACL='{"name": "base", "ingress": [{"action": "allow", "state": "enabled"}], "egress": [
    {"action": "drop", "destination": "'$UPLINK.254'", "state": "enabled"},
    {"action": "allow", "destination": "@internal", "state": "enabled"},
    {"action": "allow", "destination": "'$PUBLIC'", "state": "enabled"}]}'
n_checks=0
failed=

# Runs a command until its output matches the pattern, 10 times at most: expect WHAT PATTERN COMMAND...
expect() {
    local got
    n_checks=$((n_checks + 1))
    for _ in {1..10}; do
        got=$("${@:3}" 2>&1) || true
        # shellcheck disable=SC2053
        if [[ $got == $2 ]]; then
            echo "ok    $1: $got"
            return
        fi
        sleep 1
    done
    failed=yes
    echo "FAIL  $1: not $2, but $got"
}

# A network without ACL: make_network NAME
make_network() {
    wharf 1 POST /1.0/networks '{"name": "'"$1"'", "type": "ovn", "config": {"network": "up0",
        "ipv4.address": "10.80.1.1/24", "ipv4.nat": "true", "ipv6.address": "none"}}' >/dev/null
}

# An instance with its address in a file: make_instance NAME MEMBER NETWORK ADDRESS
make_instance() {
    wharf "$2" POST /1.0/instances '{"name": "'"$1"'", "type": "container", "profiles": [],
        "source": {"type": "image", "alias": "base"}, "config": {"security.idmap.isolated": "true"},
        "devices": {"root": {"type": "disk", "path": "/", "pool": "default"},
            "eth0": {"type": "nic", "name": "eth0", "network": "'"$3"'", "ipv4.address": "'"$4"'"}}}' "&target=m$2" >/dev/null
    echo "$4/24 10.80.1.1" | wharf_curl --fail -H 'X-Incus-type: file' --data-binary @- \
        -H 'Content-Type: application/octet-stream' \
        "https://$CLUSTER.$2:8443/1.0/instances/$1/files?project=$PROJECT&path=/etc/wharf/net" >/dev/null
    wharf "$2" PUT "/1.0/instances/$1/state" '{"action": "start"}' >/dev/null
}

# The listen address of a published port follows from the port.
published() { echo "$UPLINK.$((FIRST_PUBLISHED + $1 - FIRST_PORT))"; }

# publish NETWORK PORT ADDRESS
publish() {
    wharf 1 POST "/1.0/networks/$1/forwards" '{"listen_address": "'"$(published "$2")"'", "ports": [
        {"protocol": "tcp", "listen_port": "'"$2"'", "target_port": "22", "target_address": "'"$3"'"}]}' >/dev/null
}

# The answer of a server to an instance: from MEMBER INSTANCE ADDRESS PORT
from() { incus_on "$1" exec "$2" --project "$PROJECT" -- nc -w 2 "$3" "$4" </dev/null; }

# The answer of a server to the user outside: visit ADDRESS PORT
visit() { ip netns exec "$VISITOR" busybox nc -w 3 "$1" "$2" </dev/null; }

# Instances see the user's address at every published port, by its own address and by the login host.
expect_published() {
    local pair port address
    for pair in 20000:a1 20001:a2 20002:b1 20003:b2; do
        port=${pair%:*}
        for address in "$(published "$port")" "$LOGIN_HOST"; do
            expect "$1: user -> $address:$port" "${pair#*:}: you are *$VISITOR_NET.2:*" visit "$address" "$port"
        done
    done
}

wharf 1 POST /1.0/network-acls "$ACL" >/dev/null
for owner in a b; do
    make_network "owner-$owner"
    make_instance "${owner}1" 1 "owner-$owner" 10.80.1.11
    make_instance "${owner}2" 2 "owner-$owner" 10.80.1.12
done

echo "--- Networks over two members; both owners have the same addresses"
expect "a1 -> a2" "a2: *" from 1 a1 10.80.1.12 22
expect "a2 -> a1" "a1: *" from 2 a2 10.80.1.11 22
expect "b1 -> b2" "b2: *" from 1 b1 10.80.1.12 22
expect "b2 -> b1" "b1: *" from 2 b2 10.80.1.11 22

echo "--- Out through the uplink, by the network's address there"
for instance in a1 a2 b1 b2; do
    expect "$instance -> public" "world: you are *$UPLINK.1[01]:*" from "${instance#?}" "$instance" "$PUBLIC_HOST" 80
done

echo "--- In through published ports"
publish owner-a 20000 10.80.1.11
publish owner-a 20001 10.80.1.12
publish owner-b 20002 10.80.1.11
publish owner-b 20003 10.80.1.12
expect_published "without ACL"
expect "user -> a port that is not published" "nc: *" visit "$(published 20000)" 23

echo "--- The ACL"
private=("$UPLINK.254" "$CLUSTER.254" "$CLUSTER.1" "$CLUSTER.2" "${PRIVATE_HOSTS[@]}")
for destination in "${private[@]}"; do
    expect "without ACL: a1 -> $destination" "*: you are *$UPLINK.1[01]:*" from 1 a1 "$destination" 80
done
for owner in a b; do
    wharf 1 PATCH "/1.0/networks/owner-$owner" '{"config": {"security.acls": "base"}}' >/dev/null
done
for instance in a1 b2; do
    for destination in "${private[@]}"; do
        expect "with ACL: $instance -> $destination" "nc: *" from "${instance#?}" "$instance" "$destination" 80
    done
    expect "with ACL: $instance -> OVN" "nc: *" from "${instance#?}" "$instance" "$OVN_HOST" "$OVN_PORT"
    expect "with ACL: $instance -> public" "world: *" from "${instance#?}" "$instance" "$PUBLIC_HOST" 80
done
expect "with ACL: a1 -> a2" "a2: *" from 1 a1 10.80.1.12 22
expect_published "with ACL"

echo "--- The end of a network"
expect "removal while used" "400 *currently in use*" wharf 1 DELETE /1.0/networks/owner-b
for instance in b1 b2; do
    wharf 1 PUT "/1.0/instances/$instance/state" '{"action": "stop", "force": true}' >/dev/null
    wharf 1 DELETE "/1.0/instances/$instance" >/dev/null
done
wharf 1 DELETE /1.0/networks/owner-b >/dev/null
expect "user -> $(published 20002):20002 afterwards" "nc: *" visit "$(published 20002)" 20002
expect "user -> $(published 20000):20000 still" "a1: *" visit "$(published 20000)" 20000

[ -z "$failed" ] || fail "something failed"
echo "all $n_checks checks passed"
