#!/bin/sh
# Usage: node.sh [-OPTION...] NODE COMMAND...
#        node.sh --exec NODE COMMAND...
# Plays ssh between the nodes of nodes.sh: a shell on NODE runs COMMAND, or, with --exec, COMMAND runs as it is.
#
# Each such process group has numbers of processes, names of shared memory, a host name, temporary files and, at the
# paths in NODES_OWN (separated by colons), files that other nodes do not see. NODES_SESSION is the session of nodes.sh.
set -eu
whole=
while [ "${1#-}" != "$1" ]; do
    [ "$1" != --exec ] || whole=yes
    shift
done
node=$1
shift
[ -n "$whole" ] || set -- sh -c "$*"

# shellcheck disable=SC2016 # for the inner shell to expand
exec nsenter --net="$NODES_SESSION/$node" \
    unshare --uts --ipc --pid --mount --fork --kill-child --mount-proc sh -euc '
hostname "$0"
mount --bind "$NODES_SESSION/hosts" /etc/hosts
mount -t tmpfs own /dev/shm
mount -t tmpfs own "$NODES_SESSION/tmp"
IFS=:
for own in ${NODES_OWN:-}; do
    mount -t tmpfs own "$own"
done
unset IFS
export TMPDIR="$NODES_SESSION/tmp"
# What lies below the mounts is reached by walking there again.
cd "$PWD"
exec "$@"' "$node" "$@"
