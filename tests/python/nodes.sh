#!/bin/sh
# Usage: nodes.sh NUMBER SESSION COMMAND...
# Joins NUMBER nodes by a bridge and runs COMMAND on the first. Runs as root of a user namespace of its own, with network
# and mounts of its own; all that it makes ends with these. SESSION is an empty directory.
set -eu
number=$1
session=$2
shift 2

mkdir "$session/tmp"
ip link add bridge type bridge
ip link set bridge up
echo '127.0.0.1 localhost' >"$session/hosts"
node=0
while [ "$node" -lt "$number" ]; do
    node=$((node + 1))
    echo "10.77.0.$node node$node" >>"$session/hosts"
    : >"$session/node$node"
    # The network of a node is kept by this file, through which the node is entered.
    unshare --net="$session/node$node" ip link add eth0 type veth peer name "node$node" netns 1
    ip link set "node$node" master bridge up
    nsenter --net="$session/node$node" ip -batch - <<END
link set lo up
address add 10.77.0.$node/24 dev eth0
link set eth0 up
END
done
exec "$(dirname "$0")/node.sh" --exec node1 "$@"
