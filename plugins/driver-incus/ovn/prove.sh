#!/bin/bash
# Proves what the OVN mode needs, with the restricted certificate. Run it once after up.sh.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

n_checks=0
n_failed=0

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
    n_failed=$((n_failed + 1))
    echo "FAIL  $1: not $2, but $got"
}

# A request as the driver sends it, which waits for its operation: request METHOD PATH [BODY [&KEY=VALUE]]
request() { wharf query --wait -X "$1" -d "${3:-}" "lab:/1.0$2?project=$PROJECT${4:-}" >/dev/null; }

# A network without ACL: make_network NAME
make_network() {
    request POST /networks '{"name": "'"$1"'", "type": "ovn", "config": {"network": "up0",
        "ipv4.address": "10.80.1.1/24", "ipv4.nat": "true", "ipv6.address": "none"}}'
}

# An instance with its address in a file: make_instance NAME MEMBER NETWORK ADDRESS
make_instance() {
    request POST /instances '{"name": "'"$1"'", "type": "container", "profiles": [],
        "source": {"type": "image", "alias": "base"}, "config": {"security.idmap.isolated": "true"},
        "devices": {"root": {"type": "disk", "path": "/", "pool": "default"},
        "eth0": {"type": "nic", "name": "eth0", "network": "'"$3"'", "ipv4.address": "'"$4"'"}}}' "&target=m$2"
    echo "$4/24 10.80.1.1" | wharf file push --quiet --project "$PROJECT" - "lab:$1/etc/wharf/net"
    request PUT "/instances/$1/state" '{"action": "start"}'
}

# The listen address of a published port follows from the port.
published() { echo "$UPLINK.$((FIRST_PUBLISHED + $1 - FIRST_PORT))"; }

# Publishes the port 22 of an instance: publish NETWORK PORT ADDRESS
publish() {
    request POST "/networks/$1/forwards" '{"listen_address": "'"$(published "$2")"'", "ports": [
        {"protocol": "tcp", "listen_port": "'"$2"'", "target_port": "22", "target_address": "'"$3"'"}]}'
}

# The answer of a server to an instance: from INSTANCE ADDRESS PORT
from() { wharf exec --project "$PROJECT" "lab:$1" -- nc -w 2 "$2" "$3" </dev/null; }

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

for owner in a b; do
    make_network "owner-$owner"
    make_instance "${owner}1" 1 "owner-$owner" 10.80.1.11
    make_instance "${owner}2" 2 "owner-$owner" 10.80.1.12
done

echo "--- Networks over two members; both owners have the same addresses"
expect "a1 -> a2" "a2: *" from a1 10.80.1.12 22
expect "a2 -> a1" "a1: *" from a2 10.80.1.11 22
expect "b1 -> b2" "b2: *" from b1 10.80.1.12 22
expect "b2 -> b1" "b1: *" from b2 10.80.1.11 22

echo "--- Out through the uplink, by the network's address there"
for instance in a1 a2 b1 b2; do
    expect "$instance -> public" "world: you are *$UPLINK.1[01]:*" from "$instance" "$PUBLIC_HOST" 80
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
    expect "without ACL: a1 -> $destination" "*: you are *$UPLINK.1[01]:*" from a1 "$destination" 80
done
request PATCH /networks/owner-a '{"config": {"security.acls": "'"$ACL"'"}}'
request PATCH /networks/owner-b '{"config": {"security.acls": "'"$ACL"'"}}'
for instance in a1 b2; do
    for destination in "${private[@]}"; do
        expect "with ACL: $instance -> $destination" "nc: *" from "$instance" "$destination" 80
    done
    expect "with ACL: $instance -> OVN" "nc: *" from "$instance" "$OVN_HOST" "$OVN_PORT"
    expect "with ACL: $instance -> public" "world: *" from "$instance" "$PUBLIC_HOST" 80
done
expect "with ACL: a1 -> a2" "a2: *" from a1 10.80.1.12 22
expect_published "with ACL"

echo "--- The end of a network"
expect "removal while used" "*currently in use*" request DELETE /networks/owner-b
for instance in b1 b2; do
    request PUT "/instances/$instance/state" '{"action": "stop", "force": true}'
    request DELETE "/instances/$instance"
done
request DELETE /networks/owner-b
expect "user -> $(published 20002):20002 afterwards" "nc: *" visit "$(published 20002)" 20002
expect "user -> $(published 20000):20000 still" "a1: *" visit "$(published 20000)" 20000

echo "$n_checks checks, $n_failed failed"
[ "$n_failed" = 0 ]
