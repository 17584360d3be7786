"""Another process in a container, by the OCI runtime that has made it: what to run, out of what its monitor shows.

Podman is not asked. A container's monitor (conmon) is a process of this user, in the user and mount namespace in which
Podman has made the container; its command line names the OCI runtime, with which options, and the bundle, where the
container's own process is described. `nsenter` (util-linux) enters those namespaces, which only a process of one
thread may, and becomes the runtime's ``exec``.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import orjson

from ipc.host.text.json_types import Json, JsonObject
from workers.exec.tags import RUNTIMES, ProcessTag
from workers.kubecontainer.runtime import InspectedContainer
from workers.podman_files.bundle import read_process
from workers.podman_files.monitor import has_our_root, monitor_option, monitor_words
from workers.proc.process_limit import LIMIT, of_a_command, own_limit
from workers.proc.procfs import PROC
from workers.proc.rlimit_tag import TAG_LIMIT, PosixRlimit

ENTERING: Final = "rootlet-nsenter"
"""argv[0] of nsenter, with which its error messages begin, and no others."""

_UNLIMITED: Final = 2**64 - 1
_LIMITS: Final = {
    "Max cpu time": "CPU",
    "Max file size": "FSIZE",
    "Max data size": "DATA",
    "Max stack size": "STACK",
    "Max core file size": "CORE",
    "Max resident set": "RSS",
    "Max processes": "NPROC",
    "Max open files": "NOFILE",
    "Max locked memory": "MEMLOCK",
    "Max address space": "AS",
    "Max pending signals": "SIGPENDING",
    "Max msgqueue size": "MSGQUEUE",
    "Max nice priority": "NICE",
    "Max realtime priority": "RTPRIO",
    "Max realtime timeout": "RTTIME",
}
"""Rows of /proc/PID/limits, but for the one that carries a tag."""
_VARIABLES: Final = ("PATH", "XDG_RUNTIME_DIR")
"""Variables that the OCI runtime needs: they locate its state directory when there is no --root."""
_ROW: Final = re.compile(r"(?P<name>Max [a-z ]+?) +(?P<soft>\d+|unlimited) +(?P<hard>\d+|unlimited)")
_COMMAND: Final = re.compile(r"executable|exec container process|exec format error|^exec: |: exec: |: exec /", re.I)
"""Matches messages of crun and runc when only the command itself could not be run."""


class NotDirect(Exception):
    """This container is not reached in this way. The message says why."""


class Rlimit(msgspec.Struct, frozen=True):
    soft: int
    hard: int

    def json(self, name: str) -> PosixRlimit:
        return {"type": name, "soft": self.soft, "hard": self.hard}


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A container in which commands can be run."""

    container_id: str
    monitor_pid: int
    program: str
    """To be spawned: nsenter, or the OCI runtime where no other namespace has to be entered."""
    argv: tuple[str, ...]
    """The command of the OCI runtime, before its subcommand."""
    env: dict[str, str]
    process: bytes
    """JSON of a process like the container's own (`describe`), still without a command and a tag."""

    def is_there(self) -> bool:
        """Whether its monitor still is: a pid may have passed to another process."""
        return _monitor_words(self.monitor_pid, self.container_id) is not None

    def arguments(self, process_file: str, log_file: str) -> list[str]:
        log = (f"--log={log_file}", "--log-format=json")
        return [*self.argv, *log, "exec", "--process", process_file, self.container_id]

    def process_json(self, command: Sequence[str], tag: ProcessTag) -> bytes:
        """The process that is wanted, for ``exec --process``."""
        process = orjson.loads(self.process)
        process["args"] = list(command)
        process["rlimits"].append(tag.rlimit())
        return orjson.dumps(process)


def describe(own: Json, limits: Mapping[str, Rlimit], processes: int | None = None) -> bytes:
    """A process like the container's own: what that is described as in the bundle, with the capabilities of a podman
    exec (libpod/oci_conmon_exec_linux.go, setProcessCapabilitiesExec), and with ``limits`` by OCI name where the
    description says nothing. ``processes``: how many this process may have."""
    rlimits = {name: limit.json(name) for name, limit in limits.items()}
    rlimits |= {limit["type"]: limit for limit in own.get("rlimits") or () if limit["type"] != TAG_LIMIT}
    if LIMIT in rlimits:
        rlimits[LIMIT] = of_a_command(rlimits[LIMIT], processes)
    process = {**own, "args": [], "terminal": False, "rlimits": list(rlimits.values())}
    if own.get("capabilities") is not None:
        process["capabilities"] = _capabilities(own)
    return orjson.dumps(process)


def find_target(container: InspectedContainer) -> Target:
    """Reads /proc and the container's bundle: a few small files. Raises NotDirect."""
    words = _monitor_words(container.conmon_pid, container.id)
    if words is None:
        raise NotDirect("the container has no monitor among the processes of this host")
    try:
        return _target(container, words)
    except (OSError, orjson.JSONDecodeError, KeyError) as error:
        raise NotDirect(f"what its monitor shows cannot be read: {error!r}") from error


def is_about_the_command(words: str) -> bool:
    """Whether the OCI runtime says that the command itself cannot be run."""
    return _COMMAND.search(words) is not None


def runtime_options(words: Sequence[str]) -> list[str]:
    """The OCI runtime's global options on a monitor's command line, but for those about logging."""
    options: list[str] = []
    given = iter(words)
    for word in given:
        name, equals, value = word.partition("=")
        if name == "--runtime-arg":
            options.append(value if equals else next(given, ""))
    return list(_without_log(options))


def _without_log(options: Iterable[str]) -> Iterable[str]:
    given = iter(options)
    for option in given:
        if not option.startswith("--log"):
            yield option
        elif "=" not in option:
            next(given, None)


def _target(container: InspectedContainer, words: Sequence[str]) -> Target:
    runtime, bundle = monitor_option(words, "-r"), monitor_option(words, "-b")
    if os.path.basename(runtime) not in RUNTIMES:
        raise NotDirect(f"its OCI runtime is {runtime or 'unknown'}")
    monitor = PROC / str(container.conmon_pid)
    entering = _entering(monitor)
    process = read_process(f"{monitor}/root{bundle}")
    argv = (runtime, *runtime_options(words))
    whose = (monitor.name, "self")  # the container's own process has inherited what its monitor has
    limits = parse_limits(*((PROC / who / "limits").read_text() for who in whose))
    return Target(
        container_id=container.id,
        monitor_pid=container.conmon_pid,
        program=_nsenter() if entering else runtime,
        argv=(ENTERING, "--preserve-credentials", *entering, "--", *argv) if entering else argv,
        env=_environment(monitor),
        process=describe(process, limits, own_limit()),
    )


def _entering(monitor: Path) -> list[str]:
    """nsenter's options for the namespaces that are not ours already. Raises OSError, for another user's monitor."""
    names = {"user": "user", "mount": "mnt"}
    theirs = {option: monitor / "ns" / name for option, name in names.items()}
    ours = PROC / "self" / "ns"
    return [f"--{option}={path}" for option, path in theirs.items() if not path.samefile(ours / names[option])]


def _nsenter() -> str:
    found = shutil.which("nsenter")
    if found is None:
        raise NotDirect("nsenter is not on PATH")
    return found


def parse_limits(limits: str, ours: str) -> dict[str, Rlimit]:
    """A process's limits by OCI name, in so far as a process with ``ours`` may set them: none may raise a hard one."""
    highest = {name: limit.hard for name, limit in _rows(ours)}
    return {
        name: Rlimit(min(limit.soft, highest.get(name, limit.soft)), min(limit.hard, highest.get(name, limit.hard)))
        for name, limit in _rows(limits)
    }


def _rows(limits: str) -> Iterator[tuple[str, Rlimit]]:
    for line in limits.splitlines():
        row = _ROW.match(line)
        if row is not None and row["name"] in _LIMITS:
            soft, hard = (_UNLIMITED if word == "unlimited" else int(word) for word in (row["soft"], row["hard"]))
            yield f"RLIMIT_{_LIMITS[row['name']]}", Rlimit(soft, hard)


def _environment(monitor: Path) -> dict[str, str]:
    entries = (monitor / "environ").read_bytes().decode(errors="surrogateescape").split("\0")
    found = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    return {name: found[name] for name in _VARIABLES if name in found}


def _monitor_words(pid: int, container_id: str) -> list[str] | None:
    words = monitor_words(pid)
    return words if monitor_option(words, "-c") == container_id and has_our_root(pid) else None


def _capabilities(process: Json) -> JsonObject:
    own = process["capabilities"]
    bounding, effective = own.get("bounding") or [], own.get("effective") or []
    if process.get("user", {}).get("uid", 0) == 0:
        return {**own, "inheritable": [], "effective": bounding, "permitted": bounding}
    return {"bounding": bounding} | dict.fromkeys(("effective", "inheritable", "permitted", "ambient"), effective)
