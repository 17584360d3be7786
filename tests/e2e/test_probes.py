"""Each kind of probe with each of its parameters, on pods that contain one static binary; servers are in the test.

Every case would show something else if its parameter were ignored. Times are those that the agent has recorded, and
bounded from below only, because a busy machine makes everything take longer. All pods start at once, so that cases
that take their time take it together, and go when their case is over: ten attempts a second cost the others a CPU. The
examples of the Kubernetes documentation are in `test_probe_examples.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from ipc.host.clock import monotonic, parse_rfc3339
from tests.e2e.agent import Agent, container_status, is_ready, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import Json, pod
from tests.e2e.pod_servers import Counted, PodServers
from tests.e2e.probe_kinds import KINDS, WEB, answer_few, answer_sick, answer_well, only
from tests.support.one_binary import ASK, STUBBORN, WAIT, ensure_one_binary_image
from tests.support.servers.health_server import SERVING, health
from tests.support.servers.local_servers import Handler, answering, response, silent, unused_port
from tests.support.variants import seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.timeout(600)]

START_DEADLINE_S: Final = 300.0
"""Deadline for all pods, on a machine that has a lot else to do; alone it takes seconds."""
DEADLINE_S: Final = 120.0
ROUNDING_S: Final = 1.0
"""The agent's timestamps have whole seconds."""
SELDOM: Final = {"periodSeconds": 600}
"""One attempt is all there is."""
EVERY_SECOND: Final = {"periodSeconds": 1}
PATIENT: Final = {"failureThreshold": 1000}
"""Nothing comes of it."""

STARTUP: Final = "startup"
LIVENESS: Final = "liveness"
READINESS: Final = "readiness"
TYPES: Final = (STARTUP, LIVENESS, READINESS)
KILLING: Final = (STARTUP, LIVENESS)
"""Kinds of probes that get a container killed."""


# The table of numbers


class Seen(NamedTuple):
    """Words of the agent about one container with one probe that never succeeds."""

    agent: Agent
    kind: str
    parameter: str
    type: str

    def status(self) -> Json:
        return container_status(self.agent.pods()[pod_name(self.kind, self.parameter)], self.type)

    def failures(self) -> list[Json]:
        """The events."""
        return told(self.agent, pod_name(self.kind, self.parameter), self.type, "Unhealthy")

    def repeated(self, text: str = "") -> Json | None:
        """An event with that text that has happened more than once."""
        found = (event for event in self.failures() if text in event["message"] and event["count"] > 1)
        return next(found, None)

    def started_at(self) -> float:
        return parse_rfc3339(self.status()["state"]["running"]["startedAt"])


Measure = Callable[[Seen], float | None]
"""A number that is the parameter's value at the least, as soon as there is something to measure."""


def first_failure_s(seen: Seen) -> float | None:
    """After the start of the container. By default there is no delay."""
    firsts = [parse_rfc3339(event["firstTimestamp"]) for event in seen.failures()]
    return min(firsts) - seen.started_at() if firsts else None


def period_s(seen: Seen) -> float | None:
    """On the average, since the container's start, when the first attempt is due. By default these are ten seconds."""
    failure = seen.repeated()
    if failure is None:
        return None
    return (parse_rfc3339(failure["lastTimestamp"]) - seen.started_at()) / float(failure["count"] - 1)


def failure_lasts_s(seen: Seen) -> float | None:
    """From the end of one attempt to which nobody answers to the end of the next one. By default they last a second
    each, of which every other one begins an attempt."""
    failure = seen.repeated(KINDS[seen.kind].late)
    if failure is None:
        return None
    first_at, last_at = parse_rfc3339(failure["firstTimestamp"]), parse_rfc3339(failure["lastTimestamp"])
    return (last_at - first_at) / float(failure["count"] - 1)


def failures_per_restart(seen: Seen) -> float | None:
    """By default three, and up to two for a life that goes on."""
    restarts = float(seen.status()["restartCount"])
    return sum(event["count"] for event in seen.failures()) / restarts if restarts else None


def life_s(seen: Seen) -> float | None:
    """Seconds that a container lives which is killed at once and heeds nothing. By default the pod decides: an hour."""
    ended = seen.status()["lastState"].get("terminated")
    return parse_rfc3339(ended["finishedAt"]) - parse_rfc3339(ended["startedAt"]) if ended else None


class Number(NamedTuple):
    """A parameter that is a number, and what shows that it counts."""

    value: int
    measure: Measure
    others: Json
    """The other parameters."""
    types: tuple[str, ...] = TYPES
    command: tuple[str, ...] = WAIT
    mute: bool = False
    """There is a server, and it does not answer; otherwise nobody is there."""
    rounding: float = ROUNDING_S
    """By how much the measure may be too low."""


NUMBERS: Final = {
    "initialDelaySeconds": Number(6, first_failure_s, PATIENT | SELDOM),
    "periodSeconds": Number(15, period_s, PATIENT),
    "timeoutSeconds": Number(5, failure_lasts_s, PATIENT | EVERY_SECOND, mute=True),
    "failureThreshold": Number(6, failures_per_restart, EVERY_SECOND, KILLING, rounding=0),
    "terminationGracePeriodSeconds": Number(5, life_s, SELDOM | {"failureThreshold": 1}, KILLING, STUBBORN),
}
"""successThreshold, which is 1 but for readiness, and a readiness probe's failureThreshold have their own test."""


OF_ONE_KIND: Final = {
    "initialDelaySeconds": "exec",
    "periodSeconds": "httpGet",
    "terminationGracePeriodSeconds": "grpc",
}
"""Numbers that are one for all kinds, and the kind with which they are tried in every run."""


def is_often(kind: str, parameter: str) -> bool:
    return OF_ONE_KIND.get(parameter, kind) == kind


def number_pods(image: str, also: Container[tuple[str, str]]) -> Iterator[Json]:
    """One for each kind and number that is tried often or is among the others, with a container for each type of
    probe."""
    for parameter, number in NUMBERS.items():
        for kind, about in KINDS.items():
            if not is_often(kind, parameter) and (kind, parameter) not in also:
                continue
            probe = {**about.action, **number.others, parameter: number.value}
            containers = (one(image, type, number.command, **{f"{type}Probe": probe}) for type in number.types)
            yield pod(pod_name(kind, parameter), *containers, terminationGracePeriodSeconds=3600)


# The table of handlers


class Asked(NamedTuple):
    """A parameter of a handler, and a server that is content with those who heed it."""

    action: Json
    """Beside the port's number."""
    server: Handler = silent
    tls: bool = False
    on_node: bool = False
    """The server is not in the pod."""


NAMED: Final = "its"
"""The container's port."""
ELSEWHERE: Final = ("Location: http://example.org/",)

HANDLERS: Final = {
    ("exec", "command"): Asked({"command": [*ASK, "$(PORT)"]}, KINDS["exec"].well),
    ("httpGet", "port"): Asked({}, only("GET / HTTP/1.1", "User-Agent: kube-probe/1.36")),
    ("httpGet", "port-by-name"): Asked({"port": NAMED}, only()),
    ("httpGet", "path"): Asked({"path": "/healthz?deep"}, only("GET /healthz?deep HTTP/1.1")),
    ("httpGet", "host"): Asked({"host": "127.0.0.1"}, only(), on_node=True),
    ("httpGet", "scheme"): Asked({"scheme": "HTTPS"}, only(), tls=True),
    ("httpGet", "headers"): Asked(
        {"httpHeaders": [{"name": "Host", "value": "example.org"}, {"name": "X-Probe", "value": "yes"}]},
        only("Host: example.org", "X-Probe: yes"),
    ),
    ("httpGet", "redirected"): Asked({}, answering(response(b"body", "302 Found", ELSEWHERE))),
    ("tcpSocket", "port"): Asked({}),
    ("tcpSocket", "port-by-name"): Asked({"port": NAMED}),
    ("tcpSocket", "host"): Asked({"host": "127.0.0.1"}, on_node=True),
    ("grpc", "port"): Asked({}, health({"": SERVING})),
    ("grpc", "service"): Asked({"service": "db"}, health({"db": SERVING})),
}
"""By kind and name of the parameter."""
SPARED: Final = ("httpGet", "redirected")
"""Servers that stay, as their pod does, whatever becomes of its other containers."""

Ports = dict[tuple[str, str], int]


def handler_pods(image: str, ports: Ports) -> Iterator[Json]:
    """One for each kind, with a container for each parameter, which has probes of all three types."""
    for kind in KINDS:
        mine = (row for row in HANDLERS if row[0] == kind)
        yield pod(pod_name(kind, "handler"), *(asked_container(image, row, ports[row]) for row in mine))


def asked_container(image: str, row: tuple[str, str], port: int) -> Json:
    kind, name = row
    number = {} if kind == "exec" else {"port": port}
    probe = {kind: number | HANDLERS[row].action, **EVERY_SECOND, "timeoutSeconds": 5}
    return one(
        image,
        name,
        ports=[{"name": NAMED, "containerPort": port}],
        env=[{"name": "PORT", "value": str(port)}],
        startupProbe=probe | PATIENT,
        livenessProbe={**probe, "failureThreshold": 1},
        readinessProbe=probe,
    )


# All pods at once


THRESHOLDS: Final = {"successThreshold": 3, "failureThreshold": 8}


def threshold_pods(image: str) -> Iterator[Json]:
    for kind, about in KINDS.items():
        ready = {**about.action, **THRESHOLDS, **EVERY_SECOND, "timeoutSeconds": 2}
        yield pod(pod_name(kind, "thresholds"), one(image, readinessProbe=ready))


def absent_pod(image: str) -> Json:
    # A machine that has a lot else to do needs its time to say that there is no such file.
    absent = {"exec": {"command": ["/bin/sh"]}, **EVERY_SECOND, "failureThreshold": 1, "timeoutSeconds": 60}
    return pod("absent", one(image, livenessProbe=absent))


@pytest.fixture(scope="module")
def ports() -> Ports:
    """Ports of the servers of the table of handlers. On the node others have servers too."""
    inside = range(WEB, WEB + len(HANDLERS))
    return {row: unused_port() if HANDLERS[row].on_node else port for row, port in zip(HANDLERS, inside, strict=True)}


@pytest.fixture(scope="module")
def agent(
    request: pytest.FixtureRequest, new_shared_agent: NewAgent, ports: Ports, tmp_path_factory: pytest.TempPathFactory
) -> Agent:
    """An agent that runs all pods of the tests of this file that were asked for."""
    image = ensure_one_binary_image(tmp_path_factory.mktemp("image"))
    shared = new_shared_agent()
    shared.start()
    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    asked = {(each["kind"], each["parameter"]) for each in parameters if {"kind", "parameter"} <= each.keys()}
    pods = [*number_pods(image, asked), *handler_pods(image, ports), *threshold_pods(image), absent_pod(image)]
    shared.write(*pods)
    shared.until_running((manifest["metadata"]["name"] for manifest in pods), START_DEADLINE_S)
    return shared


@pytest.fixture(scope="module")
def servers(agent: Agent) -> Iterator[PodServers]:
    """Servers of the tables' pods; those that do not answer serve from the beginning."""
    made = PodServers(agent)
    for parameter, number in NUMBERS.items():
        for kind in KINDS if number.mute else ():
            answer_few(made, pod_name(kind, parameter), KINDS[kind], 0)
    yield made
    made.close()


def one(image: str, name: str = "main", command: Iterable[str] = WAIT, **fields: Any) -> Json:
    """A container with nothing in it but a binary."""
    return {"name": name, "image": image, "imagePullPolicy": "Never", "command": list(command), **fields}


def pod_name(kind: str, about: str) -> str:
    return f"{kind}-{about}".lower()


def told(agent: Agent, name: str, container: str, reason: str) -> list[Json]:
    """The events about a container that have this reason."""
    path = f"spec.containers{{{container}}}"
    events = (event for event in agent.events(name) if event["reason"] == reason)
    return [event for event in events if event["involvedObject"]["fieldPath"] == path]


def until_all(agent: Agent, what: str, cases: Iterable[Any], holds: Callable[[dict[str, Json], Any], bool]) -> None:
    """Wait until it has held for each of them, given the pods as they are; says for which it has not."""
    left = list(cases)

    def none_left() -> bool:
        pods = agent.pods()
        left[:] = [case for case in left if not holds(pods, case)]
        return not left

    try:
        agent.until(none_left, what, DEADLINE_S)
    except AssertionError as late:
        raise AssertionError(f"not for {left}: {late}") from late


@pytest.mark.usefixtures("servers")
def test_what_cannot_be_run_says_nothing_about_the_container(agent: Agent) -> None:
    """A single failure would have killed it."""
    agent.until(lambda: bool(agent.messages("absent", "Unhealthy")), "an attempt has failed", DEADLINE_S)
    [errored, *_] = agent.messages("absent", "Unhealthy")
    assert errored.startswith("Liveness probe errored and resulted in unknown state: ")
    assert restart_count(agent.pods()["absent"]) == 0
    agent.remove("absent")


def test_each_parameter_of_each_handler(agent: Agent, servers: PodServers, ports: Ports) -> None:
    """All three probes of a container find its server, and no other; when it goes they find nobody."""
    counted = {row: Counted(asked.server) for row, asked in HANDLERS.items()}
    where = {(kind, name): pod_name(kind, "handler") for kind, name in HANDLERS}
    pods = agent.pods()
    before = {row: container_status(pods[where[row]], row[1]) for row in HANDLERS}
    assert not [row for row, status in before.items() if status["started"] or status["ready"]]
    for row, asked in HANDLERS.items():
        servers.serve(where[row], ports[row], counted[row], tls=asked.tls, own_network=not asked.on_node)

    def is_content(pods: dict[str, Json], row: tuple[str, str]) -> bool:
        """Whether the liveness probe has asked too: one of the startup probe's, two of the others'."""
        return container_status(pods[where[row]], row[1])["ready"] and counted[row].clients >= 5

    until_all(agent, "their probes are content", HANDLERS, is_content)
    assert not [row for row in HANDLERS if told(agent, where[row], row[1], "Killing")]
    warning = told(agent, where["httpGet", "redirected"], "redirected", "ProbeWarning")[0]["message"]
    assert warning.endswith(" probe warning: Probe terminated redirects, Response body: body")
    others = [row for row in HANDLERS if row != SPARED]
    for row in others:
        servers.stop(where[row], ports[row])

    def is_restarted(pods: dict[str, Json], row: tuple[str, str]) -> bool:
        return restart_count(pods[where[row]], row[1]) > 0

    until_all(agent, "their liveness probes have failed", others, is_restarted)
    spared = container_status(agent.pods()[where[SPARED]], SPARED[1])
    assert (spared["ready"], spared["restartCount"]) == (True, 0)
    agent.remove(*set(where.values()))


def test_readiness_takes_so_many_answers_in_a_row(agent: Agent, servers: PodServers) -> None:
    """successThreshold and failureThreshold: by default one and three."""
    names = {kind: pod_name(kind, "thresholds") for kind in KINDS}
    for kind, name in names.items():
        answer_few(servers, name, KINDS[kind], THRESHOLDS["successThreshold"] - 1)

    def is_late(_pods: dict[str, Json], kind: str) -> bool:
        return any(KINDS[kind].late in message for message in agent.messages(names[kind], "Unhealthy"))

    until_all(agent, "the next attempt got no answer", KINDS, is_late)
    pods = agent.pods()
    assert not [kind for kind in KINDS if is_ready(pods[names[kind]])], "two were not enough, and it stays so"
    for kind, name in names.items():
        answer_well(servers, name, KINDS[kind])
    agent.until_ready(names.values(), DEADLINE_S)
    fell_ill: dict[str, float] = {}
    lasted_s: dict[str, float] = {}
    for kind, name in names.items():
        fell_ill[kind] = monotonic()
        answer_sick(servers, name, KINDS[kind])

    def is_not_ready(pods: dict[str, Json], kind: str) -> bool:
        lasted_s[kind] = monotonic() - fell_ill[kind]
        return not is_ready(pods[names[kind]])

    until_all(agent, "they are not ready any more", KINDS, is_not_ready)
    # The first attempt may have come late, those after it come in their rhythm.
    at_least_s = THRESHOLDS["failureThreshold"] - 2
    assert not {kind: s for kind, s in lasted_s.items() if s <= at_least_s}
    pods = agent.pods()
    for kind, name in names.items():
        assert any(KINDS[kind].complaint in message for message in agent.messages(name, "Unhealthy"))
        assert restart_count(pods[name]) == 0
    agent.remove(*names.values())


@pytest.mark.parametrize("type", KILLING)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_told_of_a_container_that_is_restarted(agent: Agent, kind: str, type: str) -> None:
    name = pod_name(kind, "failureThreshold")
    agent.until(lambda: restart_count(agent.pods()[name], type) > 0, "it is restarted", DEADLINE_S)
    failed = [event["message"] for event in told(agent, name, type, "Unhealthy")]
    refused = [message for message in failed if KINDS[kind].refused in message]
    assert refused
    assert all(message.startswith(f"{type.capitalize()} probe failed: ") for message in refused)
    [killed] = {event["message"] for event in told(agent, name, type, "Killing")}
    assert killed == f"Container {type} failed {type} probe, will be restarted"


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize(
    ("kind", "parameter", "type"),
    [
        (pytest.param if is_often(kind, parameter) else seldom)(kind, parameter, type, id=f"{kind}-{parameter}-{type}")
        for kind in KINDS
        for parameter in NUMBERS
        for type in NUMBERS[parameter].types
    ],
)
def test_each_number(agent: Agent, kind: str, parameter: str, type: str) -> None:
    number, seen = NUMBERS[parameter], Seen(agent, kind, parameter, type)
    agent.until(lambda: number.measure(seen) is not None, f"the {parameter} shows", DEADLINE_S)
    measured = number.measure(seen)
    assert measured is not None
    assert measured >= number.value - number.rounding
    if type == number.types[-1] and number.command is not STUBBORN:
        agent.remove(pod_name(kind, parameter))
