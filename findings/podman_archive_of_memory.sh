#!/usr/bin/env bash
# Podman 4.3.1 (Debian 12: podman 4.3.1+ds1-8+deb12u1, crun 1.8.1), rootless.
#
# `GET containers/ID/archive?path=` of a file that lies on a mount of the running container's own, such as /dev/shm or
# /proc, answers 200 with an archive that holds nothing. The error is in the service's log alone. `podman cp` without a
# service fails with 125 for the same file.
#
# It matters to every client that copies files out by the API: success and an empty archive look like an empty file
# system, and data is lost without a word. A client has to compare the archive with what it asked for.
set -euo pipefail
# shellcheck source=findings/temporary_podman
source "$(dirname "${BASH_SOURCE[0]}")/temporary_podman"

start_service
id=$(create '{"image": "'"$image"'", "command": ["sh", "-c", "echo words >/dev/shm/file; exec sleep 600"],
    "netns": {"nsmode": "none"}}')
api POST "/containers/$id/start"
until podman exec "$id" cat /dev/shm/file >/dev/null 2>&1; do sleep 0.1; done

code=$(api GET "/containers/$id/archive?path=/dev/shm/file" --output "$top/answer.tar" --write-out '%{http_code}')
echo "code $code, entries: $(tar --list --file "$top/answer.tar" | wc -l); the service's log: $(tail -n 1 "$top/service.log")"
answers_success() { [[ $code == 200 ]]; }
holds_nothing() { [[ -z $(tar --list --file "$top/answer.tar") ]]; }
cp_fails() { ! podman cp "$id:/dev/shm/file" "$top/copied" 2>/dev/null; }
expect "the API answers 200" answers_success
expect "the archive holds nothing" holds_nothing
expect "podman cp fails" cp_fails
exit "$failed"
