#!/usr/bin/env bash
# Podman 4.3.1 (Debian 12: podman 4.3.1+ds1-8+deb12u1, conmon 2.1.6, crun 1.8.1), rootless.
#
# When a user's pause process and all monitors are killed, as the end of a session without lingering does, the runtime
# directory stays, and Podman still takes its containers for running. Then
#   1. every command, `podman ps` too, ends with "invalid internal status" and names `podman system migrate`;
#   2. `podman system migrate` waits 5 s for the first container and gives up: it has to run once for each;
#   3. a command on another, empty store makes a new pause process, after which `podman ps` works and still says "Up".
# 5.4.2 does 1 and 3, too (seen on Debian 13); 5.8.6 recovers by itself (a change of 5.7).
#
# It matters to whatever starts containers for a user without systemd: Podman's own advice does not get it going again,
# and an answer from 3 is no proof that anything runs.
set -euo pipefail

# shellcheck source=findings/temporary_podman
source "$(dirname "${BASH_SOURCE[0]}")/temporary_podman"

for name in one two; do
    podman run --quiet --detach --network none --name "$name" "$image" sleep 600 >/dev/null
done
echo "killing the monitors, the containers and the pause process"
podman inspect --format '{{.State.ConmonPid}} {{.State.Pid}}' one two >"$top/pids"
xargs kill -9 <"$top/pids"
kill -9 "$(<"$run/libpod/tmp/pause.pid")"

stuck() { ! podman ps >"$top/out" 2>&1 && grep -q "invalid internal status.*system migrate" "$top/out"; }
migration_gives_up() {
    ! podman system migrate >"$top/out" 2>&1 && grep -q "cannot stop container" "$top/out" &&
        [[ $(grep -c "^stopped" "$top/out") == 1 ]] && stuck
}
runs_for_podman() { [[ $(podman ps --format '{{.Status}}' 2>/dev/null | grep -c '^Up') -ge 1 ]]; }

expect "podman ps ends with an error that names podman system migrate" stuck
expect "podman system migrate gives up at the first of two containers, and the next command fails as before" \
    migration_gives_up
podman --root "$top/empty" --runroot "$run/empty" --storage-driver vfs unshare true
expect "after a command on an empty store podman ps works, and a killed container is Up" runs_for_podman
exit "$failed"
