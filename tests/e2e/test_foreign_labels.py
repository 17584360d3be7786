"""Our labels on what the agent has not made: an image, another command, a container of before there were signatures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.agent import Agent, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import STAY, Json, container, pod
from tests.e2e.status_observer import INFRA, Seen
from tests.support.podman_service import IMAGE, podman

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

NODE: Final = "e2e"
SIGNATURE: Final = "rootlet.dev/signature"
ATTEMPT: Final = "rootlet.dev/attempt"
PRE_STOP: Final = "io.kubernetes.container.preStopHandler"
KEY_FILE: Final = "label-key.json"
HOOK: Final = {"exec": {"command": ["touch", "/shared/hooked"]}}
HOSTILE: Final[Mapping[str, str]] = {
    "rootlet.dev/instance": "somebody-else",
    "io.kubernetes.pod.name": "../../etc",
    "io.kubernetes.pod.namespace": "kube-system",
    "io.kubernetes.pod.uid": "../../../etc/passwd",
    "io.kubernetes.container.name": "../main",
    "rootlet.dev/container-hash": "0" * 5000,
    "rootlet.dev/sandbox-hash": "0" * 5000,
    ATTEMPT: "9" * 5000,
    "rootlet.dev/restart-backoff-seconds": "1e308",
    "rootlet.dev/termination-grace-period-seconds": "9" * 23,
    "rootlet.dev/host-network": "true",
    "rootlet.dev/leaves-processes": "true",
    PRE_STOP: json.dumps(HOOK),
    "io.kubernetes.container.terminationMessagePath": "/etc/passwd",
    "io.kubernetes.container.terminationMessagePolicy": "FallbackToLogsOnError",
    SIGNATURE: "1:" + "0" * 64,
}
"""Every label that is documented, with what an attacker would write."""
OF_SANDBOXES: Final = {"rootlet.dev/sandbox-hash", "rootlet.dev/host-network"}
"""Labels that are read from Podman pods only: on containers they say nothing."""
SHARED: Final[Json] = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}


@pytest.fixture(scope="module")
def hostile_image(podman_service: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The test image with all our labels."""
    name = "localhost/rootlet-test-hostile-labels:latest"
    directory = tmp_path_factory.mktemp("hostile")
    text = "".join(f"LABEL {json.dumps(key)}={json.dumps(value)}\n" for key, value in HOSTILE.items())
    (directory / "Containerfile").write_text(f"FROM {IMAGE}\n{text}")
    podman("build", "--quiet", "--pull=never", "--tag", name, str(directory))
    yield name
    podman("image", "rm", "--force", name)


class Strangers:
    """Containers that a test runs with `podman run`: the agent's eye is not to take them for its own."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.ids: list[str] = []

    def run(self, labels: Mapping[str, str], image: str, *options: str) -> str:
        words = [f"--label={key}={value}" for key, value in labels.items()]
        id = podman("create", *options, *words, image, "sh", "-c", STAY).strip()
        self.ids.append(id)
        self._agent.eye.strangers.add(id)
        podman("start", id)
        return id

    def states(self) -> list[str]:
        return [
            podman("inspect", "--format", "{{.State.Status}} {{.State.Pid}} {{.State.StartedAt}}", id)
            for id in self.ids
        ]


@pytest.fixture
def strangers(agent: Agent) -> Iterator[Strangers]:
    made = Strangers(agent)
    yield made
    podman("rm", "--force", "--ignore", "--time", "0", *made.ids)
    agent.eye.strangers.difference_update(made.ids)


def until_told(agent: Agent, strangers: Strangers) -> None:
    """No more at once than one event names."""
    agent.until(lambda: bool(agent.messages(NODE, "UnknownContainer")), "an event tells of them")
    agent.until(lambda: all(id[:12] in agent.log_text() for id in strangers.ids), "they are told about")


def test_an_image_with_our_labels_changes_nothing(agent: Agent, hostile_image: str) -> None:
    """The container runs, restarts, and stops without the image's hook, also when the manifest names another."""

    def manifest(name: str) -> Json:
        main = {**container(name, **SHARED), "image": hostile_image}
        return pod("hostile-image", main, volumes=[{"name": "shared", "emptyDir": {}}])

    agent.run(manifest("main"))
    ours = agent.eye.container("hostile-image", "main")
    assert {key for key, value in HOSTILE.items() if ours.labels[key] == value} == OF_SANDBOXES
    podman("kill", "--signal", "KILL", ours.id)
    agent.until(lambda: restart_count(agent.pods()["hostile-image"]) == 1, "it is restarted")
    agent.until_ready(["hostile-image"])
    agent.write(manifest("renamed"))
    agent.until(
        lambda: (
            [status["name"] for status in agent.pods()["hostile-image"]["status"]["containerStatuses"]] == ["renamed"]
        ),
        "the manifest's container is another",
    )
    agent.until_ready(["hostile-image"])
    agent.until(lambda: {name for _, name in agent.eye.running("hostile-image")} == {"renamed", INFRA}, "only it runs")
    assert agent.inside("hostile-image", "ls /shared", "renamed") == ""
    assert "FailedPreStopHook" not in agent.reasons("hostile-image")
    agent.remove("hostile-image")
    agent.until_gone(["hostile-image"])


def test_strangers_with_our_labels_are_left_alone(agent: Agent, strangers: Strangers, hostile_image: str) -> None:
    canary = pod("canary", container(readinessProbe={"exec": {"command": ["true"]}, "periodSeconds": 1}))
    agent.run(canary, pod("namesake"))
    before, pod_table = agent.processes(), agent.eye.pod_table("canary")
    ours = agent.eye.container("namesake", "main")
    infra = agent.eye.running("namesake")["namesake", INFRA]
    claim = {"rootlet.dev/instance": agent.instance, "io.kubernetes.pod.uid": ours.labels["io.kubernetes.pod.uid"]}
    strangers.run(claim, hostile_image)
    strangers.run({**ours.labels, ATTEMPT: "9" * 5000}, IMAGE)
    strangers.run({**ours.labels, ATTEMPT: "9" * 23}, IMAGE)
    strangers.run(
        {**ours.labels, ATTEMPT: "7", PRE_STOP: json.dumps(HOOK)}, IMAGE, "--name", f"{ours.podman_name[:-1]}7"
    )
    strangers.run(ours.labels, IMAGE)
    strangers.run(infra.labels, IMAGE)
    podman_pod = podman("pod", "create", *(f"--label={key}={value}" for key, value in infra.labels.items())).strip()
    try:
        states = strangers.states()
        until_told(agent, strangers)
        assert agent.processes() == before
        agent.until_ready(["canary", "namesake"])
        statuses = agent.pods()["namesake"]["status"]["containerStatuses"]
        assert [(status["name"], status["containerID"]) for status in statuses] == [("main", f"podman://{ours.id}")]
        agent.remove("namesake")
        agent.until(lambda: "namesake" not in agent.pods(), "the namesake is gone")
        agent.restart()  # everything is looked at anew; what no manifest states would be an orphan
        agent.until_ready(["canary"])
        observation_requests = agent.workers()["node"]["counters"]["runtime_calls"]
        agent.until(
            lambda: agent.workers()["node"]["counters"]["runtime_calls"] > observation_requests + 4,
            "it has looked again",
        )
        assert strangers.states() == states
        assert podman("pod", "inspect", "--format", "{{.State}}", podman_pod).strip() in ("Created", "Running")
        assert agent.eye.pod_table("canary") == pod_table
        assert restart_count(agent.pods()["canary"]) == 0
    finally:
        podman("pod", "rm", "--force", "--time", "0", podman_pod)


@pytest.mark.slow
def test_no_worker_dies_of_strangers(agent: Agent, strangers: Strangers, hostile_image: str) -> None:
    agent.run(pod("beside"))
    before = agent.processes()
    own = agent.eye.container("beside", "main").labels
    for attempt in ("9" * 5000, "9" * 23, "-1", "²"):
        strangers.run({**own, ATTEMPT: attempt}, hostile_image)
    until_told(agent, strangers)
    agent.run(pod("beside-after"))
    assert agent.processes() == before


def unsigned(labels: Mapping[str, str]) -> list[str]:
    """As versions without signatures wrote them: a label of nothing was not there."""
    later = {SIGNATURE, PRE_STOP, "rootlet.dev/leaves-processes"}
    return [f"--label={key}={value}" for key, value in labels.items() if key not in later]


def make_as_before(infra: Seen, main: Seen, log: str, attempt: int) -> None:
    """The same pod and container by hand, as an agent of before the upgrade has left them."""
    name = infra.podman_name.removesuffix("_infra")
    podman("pod", "create", "--name", name, "--infra-name", infra.podman_name, *unsigned(infra.labels))
    words = unsigned({**main.labels, ATTEMPT: str(attempt)})
    named = main.podman_name.rpartition("_")[0] + f"_{attempt}"
    logging = ["--log-driver", "k8s-file", "--log-opt", f"path={log}"]
    podman("create", "--name", named, "--pod", name, *logging, *words, IMAGE, "sh", "-c", STAY)
    podman("start", infra.podman_name, named)


def test_containers_of_before_the_upgrade_are_adopted(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    agent.run(pod("old"))
    infra, main = (agent.eye.running("old")["old", name] for name in (INFRA, "main"))
    log = podman("inspect", "--format", "{{.HostConfig.LogConfig.Path}}", main.id).strip()
    agent.stop()
    podman("pod", "rm", "--force", "--time", "0", main.podman_pod)
    (agent.state / KEY_FILE).unlink()
    make_as_before(infra, main, str(Path(log).with_name("3.log")), attempt=3)
    pod_table = agent.eye.pod_table("old")
    assert len(pod_table) == 2
    agent.start()
    agent.until_ready(["old"])
    agent.restart()
    agent.until_ready(["old"])
    assert agent.eye.pod_table("old") == pod_table
    assert restart_count(agent.pods()["old"]) == 3
    assert SIGNATURE not in agent.eye.container("old", "main").labels
    podman("kill", "--signal", "KILL", agent.eye.container("old", "main").id)
    agent.until(lambda: restart_count(agent.pods()["old"]) == 4, "it is restarted")
    agent.until_ready(["old"])
    assert SIGNATURE in agent.eye.container("old", "main").labels
    assert not agent.messages(NODE, "UnknownContainer")
    agent.remove("old")
    agent.until_gone(["old"])


@pytest.mark.slow
def test_what_was_signed_with_a_key_that_is_lost_is_adopted(new_agent: NewAgent) -> None:
    agent = new_agent()
    agent.start()
    agent.run(pod("signed"))
    pod_table = agent.eye.pod_table("signed")
    key = agent.state / KEY_FILE
    first = key.read_bytes()
    assert key.stat().st_mode & 0o777 == 0o600
    secret = json.loads(first)["secret"]
    assert secret not in agent.log_text()
    agent.restart()
    assert key.read_bytes() == first
    for spoil in (key.unlink, lambda: key.write_bytes(first[:20])):
        agent.stop()
        spoil()
        agent.start()
        agent.until_ready(["signed"])
        assert agent.eye.pod_table("signed") == pod_table
        assert json.loads(key.read_bytes())["secret"] != secret
    assert not agent.messages(NODE, "UnknownContainer")
    agent.remove("signed")
    agent.until_gone(["signed"])
