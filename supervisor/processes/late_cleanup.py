"""A conmon that begins the clean-up of an ended container later, and leaves out that of a removed one.

At each end of a container conmon starts `podman container cleanup`: a whole Podman, some 35 ms of CPU, which wants the
locks of the service in the very moment in which a successor is made or the container is removed. A removal does all of
that work itself. Podman has no setting for the command, but one for conmon (``conmon_path``): a script, by which conmon
waits (``--exit-delay``) and then runs another exit command, the script itself, which runs Podman's unless the container
is gone by then. Podman's own delay, which it gives for exec sessions, comes later among the arguments, and counts.

Nothing of ours depends on that command: an inspect reads the end of a container from conmon's file. `podman ps` does so
on Podman 4 alone: on Podman 5 and 6 it says ``running`` until the clean-up or an inspect.
"""

from __future__ import annotations

import math
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

CONMON_PATHS: Final = (
    "/usr/libexec/podman/conmon",
    "/usr/local/libexec/podman/conmon",
    "/usr/local/lib/podman/conmon",
    "/usr/bin/conmon",
    "/usr/sbin/conmon",
    "/usr/local/bin/conmon",
    "/usr/local/sbin/conmon",
    "/run/current-system/sw/bin/conmon",
)
"""containers-common's own list (containers.conf(5), conmon_path)."""

_SCRIPT: Final = r"""#!/bin/sh
# conmon, with a clean-up that begins later. Written by Rootlet when it starts; podman.cleanupDelay: 0s does without.
if [ "$1" = --late-cleanup ]; then
    bundle=$2
    shift 2
    [ -d "$bundle" ] || exit 0 # The container was removed: nothing is left to clean up.
    exec "$@"
fi
before='' bundle=''
for word; do
    case $before in
    -b) bundle=$word ;;
    --exit-command)
        # The arguments are collected in their order, and the last command is the one.
        exec {conmon} --exit-delay {delay_s} --exit-command-arg --late-cleanup --exit-command-arg "$bundle" \
            --exit-command-arg "$word" "$@" --exit-command "$0"
        ;;
    esac
    before=$word
done
exec {conmon} "$@"
"""


def find_conmon(paths: Sequence[object]) -> str:
    """The one that Podman would take, of ``paths`` or of its own list; empty when there is none."""
    files = (path for path in paths or CONMON_PATHS if isinstance(path, str))
    found = (path for path in files if os.path.isfile(path) and os.access(path, os.X_OK))
    return next(found, "") or shutil.which("conmon") or ""


def script(conmon: str, delay_s: float) -> bytes:
    """conmon knows whole seconds; a part of one counts as one."""
    return _SCRIPT.format(conmon=shlex.quote(conmon), delay_s=math.ceil(delay_s)).encode()


def paths_with(script_file: Path, paths: Sequence[object]) -> list[object]:
    """Value of ``conmon_path``: Podman takes the first that answers, so a script that cannot be run costs nothing."""
    return [str(script_file), *(paths or CONMON_PATHS)]
