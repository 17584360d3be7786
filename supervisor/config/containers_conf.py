"""The user's containers.conf as Podman reads it: which files count, in which order, and what they say together.

Podman 6 reads other files in another order than Podman 4 and 5 (c/storage's pkg/configfile/parse.go; c/common's
pkg/config before). Podman is asked for its version only where that makes a difference here.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ipc.host.regular_files import read_regular_file
from supervisor.config.seccomp_profiles import default_profile

FIRST_PROCESS: Final = Path("/proc/1/comm")
SYSTEMD: Final = "systemd"
"""Podman's name of the cgroup manager that makes slices and scopes. Default where the first process has it."""
VENDOR: Final = Path("/usr/share/containers")
ADMINISTRATOR: Final = Path("/etc/containers")
MAIN: Final = "containers.conf"
MAX_BYTES: Final = 16 << 20
"""Most that is read of a file."""
VERSION_DEADLINE_S: Final = 10.0
_VERSION: Final = re.compile(r"version (\d{1,4})\.")


class BrokenContainersConf(Exception):
    """Podman itself would refuse it. The message names the file."""


def conf_files(environ: Mapping[str, str], program: str = "podman") -> list[Path]:
    """The files that Podman reads in that environment, weakest first (containers.conf(5)).

    ``program`` is asked for its version where its releases disagree about the files that are there. One that does not
    answer counts as Podman 5: the agent finds out soon enough that it has none.

    Raises:
        OSError: a directory cannot be read.
    """
    if stated := environ.get("CONTAINERS_CONF"):
        return [Path(stated)]
    user = Path(environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME", "/")) / ".config") / "containers"
    before, since = _files_before_6(user), _files_since_6(user, os.getuid())
    if before != since and (_major_version(program) or 0) >= 6:
        return since
    return before


def _files_before_6(user: Path) -> list[Path]:
    """Every main file counts, each directory's drop-ins right after it."""
    found: list[Path] = []
    for directory in (VENDOR, ADMINISTRATOR, user):
        if _exists(directory / MAIN):
            found.append(directory / MAIN)
        if directory != VENDOR:
            found += _drop_ins(directory / f"{MAIN}.d").values()
    return found


def _files_since_6(user: Path, uid: int) -> list[Path]:
    """Only the strongest main file counts. Drop-ins of all directories follow, by name; of two with one name the
    stronger directory's counts."""
    found = [directory / MAIN for directory in (user, ADMINISTRATOR, VENDOR) if _exists(directory / MAIN)][:1]
    drop_ins: dict[str, Path] = {}
    for directory in (VENDOR, ADMINISTRATOR):
        special = directory / "containers.rootless.conf.d"
        for place in (directory / f"{MAIN}.d", special, special / str(uid)):
            drop_ins |= _drop_ins(place)
    drop_ins |= _drop_ins(user / f"{MAIN}.d")
    return found + [drop_ins[name] for name in sorted(drop_ins)]


def _drop_ins(directory: Path) -> dict[str, Path]:
    """By name, sorted. Not `Path.glob`, which hides that a directory may not be read. Raises OSError."""
    try:
        with os.scandir(directory) as entries:
            found = {entry.name: Path(entry.path) for entry in entries if _is_conf(entry)}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return dict(sorted(found.items()))


def _is_conf(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".conf") and entry.is_file()


def _exists(file: Path) -> bool:
    """Not `Path.is_file`, which says of a file in a closed directory that there is none. Raises OSError."""
    try:
        os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _major_version(program: str) -> int | None:
    try:
        asked = (program, "--version")
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=VERSION_DEADLINE_S, check=False).stdout
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(answer)
    return int(found[1]) if found else None


def read_conf(environ: Mapping[str, str], program: str = "podman") -> dict[str, Any]:
    """The settings that Podman reads in that environment, by table. Raises BrokenContainersConf, OSError."""
    return merged_conf(map(_read, conf_files(environ, program)))


def _read(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(read_regular_file(file, MAX_BYTES).decode())
    except ValueError as error:
        raise BrokenContainersConf(f"{file}: {error}") from error


def merged_conf(confs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Later files win key by key within a table."""
    merged: dict[str, Any] = {"containers": {}, "engine": {}}
    for conf in confs:
        for table, values in conf.items():
            if isinstance(values, Mapping):
                merged[table] = {**merged.get(table, {}), **values}
            else:
                merged[table] = values
    return merged


def named_profile(environ: Mapping[str, str], program: str = "podman") -> str:
    """Podman's default seccomp profile in that environment, which containers of our own service name; empty where it
    is in no file. A file that cannot be read is Podman's to complain of."""
    try:
        return default_profile(read_conf(environ, program))
    except (BrokenContainersConf, OSError):
        return ""


def states_process_limit(environ: Mapping[str, str], program: str = "podman") -> bool:
    """Whether ``default_ulimits`` have a limit of processes in that environment, which is then the containers'."""
    try:
        stated = read_conf(environ, program)["containers"].get("default_ulimits", ())
    except (BrokenContainersConf, OSError):
        return False
    limits = stated if isinstance(stated, list) else ()
    return any(str(limit).lower().removeprefix("rlimit_").startswith("nproc=") for limit in limits)


def cgroup_manager(environ: Mapping[str, str]) -> str:
    """Manager by which Podman makes cgroups in that environment: ``systemd``, ``cgroupfs``, or empty where a file
    cannot be read, of which Podman complains."""
    try:
        return manager_of(read_conf(environ))
    except (BrokenContainersConf, OSError):
        return ""


def manager_of(conf: Mapping[str, Any]) -> str:
    """Without a word in the files as c/common's pkg/config/systemd.go has it."""
    if stated := conf["engine"].get("cgroup_manager"):
        return str(stated)
    with contextlib.suppress(OSError):
        if FIRST_PROCESS.read_text().strip() == SYSTEMD:
            return SYSTEMD
    return "cgroupfs"
