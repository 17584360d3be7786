"""An independent eye on Podman: its own lists and the labels as they are documented, nothing of what it looks at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import psutil

from tests.support.podman_lists import Kind
from tests.support.podman_service import listed, podman, until_removed

REMOVED_AT_ONCE: Final = 10
"""Pods that one command removes: a command has a deadline, and sixty pods take long on a host that is busy."""
REMOVERS: Final = 4
"""Commands at the same time: each waits for one pod's network and monitors after the other."""
WORTH_A_COMMAND: Final = 3
"""Pods: fewer are gone sooner than one more command has begun."""
INFRA: Final = "<infra>"

_INSTANCE: Final = "rootlet.dev/instance"
_ATTEMPT: Final = "rootlet.dev/attempt"
_POD: Final = "io.kubernetes.pod.name"
_CONTAINER: Final = "io.kubernetes.container.name"


ENDED: Final = {"stopped": "exited"}
"""Ended, and not yet cleaned up; which of the two Podman says is a matter of time."""


class Seen(NamedTuple):
    """One container as `podman ps` shows it."""

    id: str
    pod: str
    name: str
    """INFRA for the infra container."""
    state: str
    pid: int
    started_at: int
    exit_code: int
    attempt: int
    podman_pod: str
    podman_name: str
    labels: Mapping[str, str]

    @property
    def lifecycle(self) -> tuple[str, int, int]:
        """Changes whenever the container is started once more, or replaced."""
        return self.id, self.pid, self.started_at


class Eye:
    """Sees what carries one instance's name."""

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.strangers: set[str] = set()
        """Ids of containers that carry the name and that the test has made itself: they are not seen."""

    def containers(self, pod: str = "", *, infra: bool = False) -> list[Seen]:
        """In any state, of one pod or of all; infra containers only when asked for."""
        shown = listed(Kind.CONTAINERS, f"{_INSTANCE}={self.instance}")
        found = [_seen(container) for container in shown if container["Id"] not in self.strangers]
        return [c for c in found if (not pod or c.pod == pod) and (infra or c.name != INFRA)]

    def running(self, pod: str = "") -> dict[tuple[str, str], Seen]:
        """By pod and container, infra containers among them. Fails when one of them runs twice."""
        return by_name(c for c in self.containers(pod, infra=True) if c.state == "running")

    def pod_table(self, pod: str = "") -> dict[tuple[str, str], tuple[str, int, int]]:
        """Identities of what runs: equal before and after means that nothing was restarted."""
        return {key: container.lifecycle for key, container in self.running(pod).items()}

    def container(self, pod: str, name: str) -> Seen:
        """The one that runs."""
        return self.running(pod)[pod, name]

    def podman_pods(self) -> list[str]:
        """Ids of the sandboxes, whatever their state."""
        return [pod["Id"] for pod in listed(Kind.PODS, f"{_INSTANCE}={self.instance}")]

    def pods_volumes(self) -> list[str]:
        """Names of Podman volumes that belong to pods."""
        volumes = listed(Kind.VOLUMES, f"{_INSTANCE}={self.instance}")
        return [volume["Name"] for volume in volumes if "io.kubernetes.pod.uid" in volume["Labels"]]

    def lost_monitors(self, uids: Iterable[str]) -> list[str]:
        """Names of containers of these pods that conmon holds and Podman does not know: nobody will remove them."""
        parts = tuple(f"_{uid[:8]}_" for uid in uids)
        known = {container.id for container in self.containers(infra=True)}
        found = (_monitored(process) for process in psutil.process_iter())
        return [name for id, name in found if id and id not in known and any(part in name for part in parts)]

    def remove_everything(self) -> None:
        """All that carries the name, without asking the agent. Podman fails for a container whose process it has lost,
        and succeeds later."""
        until_removed(self._remove_everything)

    def _remove_everything(self) -> None:
        pods = self.podman_pods()
        size = min(max(math.ceil(len(pods) / REMOVERS), WORTH_A_COMMAND), REMOVED_AT_ONCE)
        with ThreadPoolExecutor(REMOVERS) as removers:
            for done in [removers.submit(_remove_pods, some) for some in batched(pods, size)]:
                done.result()
        if left := [container.id for container in self.containers(infra=True)]:
            podman("rm", "--force", "--time", "0", *left)
        if volumes := self.pods_volumes():
            podman("volume", "rm", "--force", *volumes)


def _remove_pods(ids: Sequence[str]) -> None:
    podman("pod", "rm", "--force", "--time", "0", *ids)


def batched(ids: Sequence[str], size: int) -> list[Sequence[str]]:
    """In parts of that size at the most."""
    return [ids[start : start + size] for start in range(0, len(ids), size)]


def by_name(containers: Iterable[Seen]) -> dict[tuple[str, str], Seen]:
    """By pod and container name, of those that live. Fails when there are two of one name. Podman lists one container
    after the other, so that an earlier one may have ended, and its successor begun, before it has come to the later
    one; and from 5.0 on it says `running` of one that has ended until that is cleaned up, which Rootlet lets wait."""
    live = [c for c in containers if psutil.pid_exists(c.pid)]
    named = {(c.pod, c.name): c for c in live}
    assert len(named) == len(live), f"running twice: {[c for c in live if named[c.pod, c.name] is not c]}"
    return named


def _seen(shown: Mapping[str, Any]) -> Seen:
    labels = shown["Labels"] or {}
    return Seen(
        id=shown["Id"],
        pod=labels.get(_POD, ""),
        name=INFRA if shown["IsInfra"] else labels.get(_CONTAINER, ""),
        state=ENDED.get(shown["State"], shown["State"]),
        pid=shown["Pid"],
        started_at=shown["StartedAt"],
        exit_code=shown["ExitCode"],
        attempt=int(labels.get(_ATTEMPT, "0")),
        podman_pod=shown["Pod"],
        podman_name=shown["Names"][0],
        labels=labels,
    )


def _monitored(process: psutil.Process) -> tuple[str, str]:
    """Id and name of the container that a conmon holds; empty for other processes, and one that is just ending."""
    try:
        words = process.cmdline() if process.name() == "conmon" else []
    except psutil.NoSuchProcess:
        return "", ""
    return (words[words.index("-c") + 1], words[words.index("-n") + 1]) if {"-c", "-n"} <= set(words) else ("", "")
