#!/usr/bin/env bash
# Podman 4.3.1 (Debian 12: podman 4.3.1+ds1-8+deb12u1, crun 1.8.1), rootless.
#
# `default_ulimits` of containers.conf holds for `podman run`. A container that is made through the libpod API has the
# service's own limits, whatever that file says. 5.4.2 and 6.1.1 honour it in both (seen on Debian 13 and sid).
#
# It matters to whoever moves from `podman run` to a client of the API, such as podman-py: the same host gives its
# containers another number of open files, and no answer says so.
set -euo pipefail
# shellcheck source=findings/temporary_podman
source "$(dirname "${BASH_SOURCE[0]}")/temporary_podman"

printf '[containers]\ndefault_ulimits = ["nofile=1234:1234"]\n' >>"$top/config/containers/containers.conf"
start_service
id=$(create '{"image": "'"$image"'", "command": ["sh", "-c", "ulimit -n"], "netns": {"nsmode": "none"}}')
api POST "/containers/$id/start"
api POST "/containers/$id/wait?condition=exited" >/dev/null
echo "podman run: $(podman run --quiet --rm --network none "$image" sh -c 'ulimit -n'); API: $(podman logs "$id")"

run_has_it() { [[ $(podman run --quiet --rm --network none "$image" sh -c 'ulimit -n') == 1234 ]]; }
api_has_the_services() { [[ $(podman logs "$id") =~ ^[0-9]+$ && $(podman logs "$id") != 1234 ]]; }
expect "podman run gives the limit of containers.conf" run_has_it
expect "the API gives another one" api_has_the_services
exit "$failed"
