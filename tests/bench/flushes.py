"""Flushes to the disk in the lives of pods, counted: ``python -m tests.bench.flushes --pods 20 --store transient``.

The agent runs under strace, with a Podman and a storage of its own: each pod is started, seen Ready, and removed. What
lies in the runtime directory is on no disk. Podman's count is the same on every machine; the agent's is smaller the
more pods come at once.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.booted_host import BootedHost, booted_host
from tests.e2e.manifests import pod
from tests.support.podman_service import STORE, wait_until, why_not

CALLS: Final = "fsync,fdatasync,syncfs,sync,sync_file_range,msync"
FLUSH: Final = re.compile(r"\b(?:f|fdata)sync\(\d+<([^>]*)>|\b(sync|syncfs|sync_file_range|msync)\(")
QUIET_S: Final = 3.0
"""Seconds without a flush, after which what is late is done: clean-ups of Podman's, writes of the agent's that do not
hurry."""
QUIET_DEADLINE_S: Final = 60.0
AGENT: Final = "the agent"


def until_quiet(calls: Path) -> None:
    """Wait until nothing was flushed for a while, by the calls in that file."""
    counts = [-1]

    def is_quiet() -> bool:
        counts.append(len(list(flushed(calls.read_text().splitlines()))))
        return counts[-1] == counts[-2]

    wait_until(is_quiet, QUIET_DEADLINE_S, poll_s=QUIET_S)


def flushed(lines: Iterable[str]) -> Iterator[str]:
    """Paths of what was flushed; of a call that has none its name."""
    for line in lines:
        if found := FLUSH.search(line):
            yield found[1] or found[2]


def where(path: str, agent: Path, graph: Path) -> str:
    """Owner and name of a file: logs of containers are their monitors'."""
    file = Path(path)
    if file.is_relative_to(agent / "state"):
        return f"{AGENT}: {file.relative_to(agent)}"
    if file.is_relative_to(agent):
        return "Podman: a monitor's log"
    return f"Podman: {'/'.join(file.relative_to(graph).parts[:1])}" if file.is_relative_to(graph) else path


def counted(host: BootedHost, pods: int) -> Counter[str]:
    """Flushes of the disk in the lives of that many pods."""
    agent = Agent(f"test-{os.getpid()}-flushes", {"memoryDir": str(host.runtime / "rootlet")})
    calls = agent.directory / "calls"
    agent.program = ("strace", "-D", "-f", "-y", "-qq", "-e", f"trace={CALLS}", "-o", str(calls), "rootlet")
    names = [f"flushes-{number}" for number in range(pods)]
    try:
        agent.start()
        agent.run(pod("first"))
        until_quiet(calls)
        before = len(calls.read_text().splitlines())
        agent.run(*map(pod, names))
        until_quiet(calls)
        agent.remove(*names)
        agent.until_gone(names)
        until_quiet(calls)
        lines = calls.read_text().splitlines()[before:]
    finally:
        agent.close()
    graph = host.disk / "graph"
    on_disk = (path for path in flushed(lines) if not path.startswith(str(host.runtime)))
    return Counter(where(path, agent.directory, graph) for path in on_disk)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.flushes", description=__doc__)
    parser.add_argument("--pods", type=int, default=20)
    parser.add_argument("--store", choices=("default", "transient"), default="default")
    options = parser.parse_args()
    if reason := why_not() or ("" if shutil.which("strace") else "needs strace on PATH"):
        raise SystemExit(reason)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(STORE, options.store)
        with booted_host(environment) as host:
            counts = counted(host, options.pods)
    for name, count in counts.most_common():
        print(f"{count / options.pods:8.2f}  {name}")
    its = sum(count for name, count in counts.items() if name.startswith(AGENT)) / options.pods
    a_pod = counts.total() / options.pods
    print(f"{a_pod:8.2f}  a pod on the {options.store} store, {its:.2f} of them the agent's")


if __name__ == "__main__":
    main()
