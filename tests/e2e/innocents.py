"""Pods that want nothing but to be left alone while the node runs short, and what they notice of it.

Each answers a readiness and a liveness probe every second (a slow machine's every few seconds), the first one by a
command, the others over HTTP, and writes a line of log every second: the times in its log show whether it ever stood
still.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from ipc.host.clock import wall
from supervisor.loop_checkpoints import PROBES_FILE
from tests.e2e.agent import Agent, Json
from tests.e2e.manifests import container, pods
from tests.support.podman_service import PATIENCE

INNOCENT: Final = 10
MAX_GAP_S: Final = 5.0 * PATIENCE
"""A heartbeat comes every second, on a machine that has other work a little later."""
TIMEOUT_S: Final = round(3 * PATIENCE)
"""Patience of a probe. A command is a process that begins: a second is little where thirty others want a CPU."""
PERIOD_S: Final = max(1, round(PATIENCE / 2))
"""Between probes: ten pods that are asked twice a second each are all that a machine with PATIENCE can do."""
BEGIN_TRIES: Final = 120
"""Probes of startup: a server that is slow to come is no server that has gone."""
PORT: Final = 8080
BEATS: Final = f"httpd -p {PORT} -h /; trap 'exit 0' TERM; while true; do echo beat; sleep 1; done"
BY_COMMAND: Final[Json] = {"exec": {"command": ["true"]}}
OVER_HTTP: Final[Json] = {"httpGet": {"path": "/etc/passwd", "port": PORT}}
DISTURBED: Final = frozenset({"Evicted", "Killing", "Preempting"})
"""Reasons of events that none of them has."""


class Seen(NamedTuple):
    """One of them, as it was and has to stay."""

    containers: tuple[tuple[str, int, bool], ...]
    """Id, number of restarts, and whether it is ready."""
    ready: str
    """Status of the condition Ready."""
    is_ready_for_long: bool
    """No change of the condition since all of them were ready; an agent that begins anew may date it earlier."""


class Crowd:
    """Ten pods, or fewer, and what is known of them."""

    def __init__(self, agent: Agent, count: int = INNOCENT, requests: Mapping[str, str] | None = None) -> None:
        """``requests``: of each container; without any they are BestEffort."""
        self._agent = agent
        self._pods = pods("innocent", count, _container(OVER_HTTP, requests or {}))
        first, *_ = self._pods.values()
        first["spec"]["containers"] = [_container(BY_COMMAND, requests or {})]
        agent.run(*self._pods.values())
        self._since = wall()
        self._before = self._seen()

    def _seen(self) -> dict[str, Seen]:
        found, there = {}, self._agent.pods()
        for name in self._pods:
            status = there[name]["status"]
            [ready] = [each for each in status["conditions"] if each["type"] == "Ready"]
            statuses = status["containerStatuses"]
            found[name] = Seen(
                tuple((each["containerID"], each["restartCount"], each["ready"]) for each in statuses),
                ready["status"],
                datetime.fromisoformat(ready["lastTransitionTime"]).timestamp() <= self._since,
            )
        return found

    def until_remembered(self) -> None:
        """Wait until it is on the disk that they are ready, seconds later: an agent that is killed before that begins
        with unready ones."""
        file = self._agent.state / PROBES_FILE
        ids = [id.removeprefix("podman://") for seen in self._before.values() for id, *_ in seen.containers]

        def are_known() -> bool:
            return file.exists() and all(id in file.read_text() for id in ids)

        self._agent.until(are_known, "it is written down who is ready")

    def assert_undisturbed(self) -> None:
        """None was restarted, became unready, or stood still."""
        for name, now in self._seen().items():
            before = self._before[name]
            assert now == before, f"{name}: {now}, and was {before}; {self._agent.reasons(name)}"
            assert not DISTURBED & self._agent.reasons(name).keys(), name
        name, gap = self.largest_gap()
        assert gap <= MAX_GAP_S, f"{name} stood still for {gap:.1f} s"

    def largest_gap(self) -> tuple[str, float]:
        """Longest time without a heartbeat since all were ready, in seconds, and whose."""
        now = wall()
        return max(((name, self._gap(name, now)) for name in self._pods), key=lambda found: found[1])

    def _gap(self, name: str, now: float) -> float:
        times = [self._since, *sorted(at for at in self._beats(name) if self._since < at < now), now]
        return max(after - before for before, after in itertools.pairwise(times))

    def _beats(self, name: str) -> Iterator[float]:
        """Epoch seconds."""
        logs = Path(self._agent.settings["podLogsDir"])
        for file in logs.glob(f"*_{name}_*/main/*.log"):
            for line in file.read_text().splitlines():
                yield datetime.fromisoformat(line.partition(" ")[0]).timestamp()

    def failed_probes(self) -> int:
        """Answers that did not come in time, or were no good; two in a row harm nobody."""
        events = (event for name in self._pods for event in self._agent.events(name))
        return sum(event.get("count", 1) for event in events if event["reason"] == "Unhealthy")


def _container(handler: Mapping[str, Any], requests: Mapping[str, str]) -> Json:
    probe = {**handler, "periodSeconds": PERIOD_S, "timeoutSeconds": TIMEOUT_S, "failureThreshold": 3}
    return container(
        script=BEATS,
        startupProbe={**probe, "failureThreshold": BEGIN_TRIES},
        readinessProbe=probe,
        livenessProbe=probe,
        resources={"requests": dict(requests)},
    )
