#!/bin/busybox sh
# shellcheck shell=dash disable=SC2046
# The first process of the lab's instances. With a name as argument, it greets the clients of the ports 22 and 80.
if [ $# = 1 ]; then
    echo "$1: you are" $(busybox netstat -tn | busybox awk '$4 ~ /:(22|80)$/ && /ESTAB|CLOSE_WAIT/ { print $5 }')
    exit
fi
trap 'exit 0' TERM INT PWR
mount -t proc proc /proc 2>/dev/null
read -r address gateway </etc/wharf/net
ip link set lo up
ip addr add "$address" dev eth0
ip link set eth0 up
ip route add default via "$gateway"
nc -ll -p 22 -e /sbin/init "$(hostname)" &
while :; do
    sleep 1 &
    wait $!
done
