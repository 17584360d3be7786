"""A real Prometheus scrapes a real agent's read-only port: every path, the alert rules, the dashboard's expressions.

Without Debian's package `prometheus` that is skipped; prometheus-client's parsers read the answers all the same.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from ipc.link.metrics.model import Endpoint
from tests.docs.reference.metrics import every_metric
from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod
from tests.support.podman_service import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.timeout(300)]

MONITORING: Final = Path(__file__).resolve().parents[2] / "configs" / "monitoring"
PROMETHEUS: Final = shutil.which("prometheus") or ""
DEADLINE_S: Final = 60.0
POLL_S: Final = 0.5
UNCOUNTED: Final = frozenset(
    {
        *("kubelet_evictions", "kubelet_admission_rejections_total", "kubelet_started_containers_errors_total"),
        *("kubelet_runtime_operations_errors_total", "kubelet_terminated_containers_total"),
        *("kubelet_image_pull_duration_seconds_bucket", "rootlet_breaker_open", "rootlet_task_errors_total"),
    }
)
"""Names of which a healthy agent with one pod need have no series."""
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0"


class Watched(NamedTuple):
    """An agent with a pod that runs and is probed, and its read-only port."""

    agent: Agent
    port: int


@pytest.fixture(scope="module")
def watched(new_shared_agent: NewAgent) -> Watched:
    port = free_port()
    agent = new_shared_agent(server={"address": "127.0.0.1", "readOnlyPort": port})
    agent.start()
    agent.run(pod("watched", container(readinessProbe={"exec": {"command": ["true"]}, "periodSeconds": 1})))
    return Watched(agent, port)


class Server:
    """A Prometheus on loopback."""

    def __init__(self, port: int, log: Path) -> None:
        self.port = port
        self.log = log

    def ask(self, path: str, **query: str) -> Any:
        """The data of an answer of its API."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def series(self, expression: str) -> list[Any]:
        found: list[Any] = self.ask("query", query=expression)["result"]
        return found

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=2):
                return True
        except urllib.error.HTTPError as error:
            error.close()  # it is an answer, and holds a socket
            return False
        except OSError:
            return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def prometheus(watched: Watched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Prometheus with our own configuration, pointed at the agent and asking every second."""
    if not PROMETHEUS:
        pytest.skip("Debian's package prometheus is not installed")
    directory = tmp_path_factory.mktemp("prometheus")
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    for job in config["scrape_configs"]:
        job["static_configs"] = [{"targets": [f"127.0.0.1:{watched.port}"]}]
    shutil.copy(MONITORING / "alerts.yml", directory)
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    server = Server(free_port(), directory / "log")
    command = [
        *("setpriv", "--pdeathsig", "KILL", PROMETHEUS),
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{server.port}",
    ]
    with server.log.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        wait_until(server.is_ready, DEADLINE_S, POLL_S)
        yield server
    finally:
        process.kill()
        process.wait()


def expressions() -> list[str]:
    """Every expression of the dashboard and the alert rules."""
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    rules = yaml.safe_load((MONITORING / "alerts.yml").read_text())
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    return [*shown, *(rule["expr"] for group in rules["groups"] for rule in group["rules"])]


def names_in(expression: str) -> set[str]:
    """Names of metrics in an expression, `up` apart."""
    words = re.findall(r"\b(?:kubelet|rootlet|kubernetes|prober|container|pod|workqueue)_[a-z0-9_]+\b", expression)
    labels = re.findall(r"\b([a-z_]+)\s*(?:=~|!=|!~|=)", expression)
    grouped = [word for group in re.findall(r"\bby \(([^)]*)\)", expression) for word in re.split(r",\s*", group)]
    return set(words) - {*labels, *grouped}


def test_every_name_of_an_expression_is_a_metric() -> None:
    served = {metric.name for metric in every_metric()}
    asked = set[str]().union(*map(names_in, expressions()))
    assert {re.sub("_(bucket|count|sum)$", "", name) for name in asked} - served == set()
    assert len(asked) > 30


@pytest.mark.parametrize("accept", ["text/plain", OPENMETRICS], ids=["text", "openmetrics"])
@pytest.mark.parametrize("endpoint", Endpoint)
def test_every_path_is_understood_by_prometheus_client(watched: Watched, endpoint: Endpoint, accept: str) -> None:
    url = f"http://127.0.0.1:{watched.port}{endpoint.value}"
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=10) as answer:
        text = answer.read().decode()
    parse: Any = parse_openmetrics if accept == OPENMETRICS else parse_text
    families = list(parse(text))
    declared = {metric.name.removesuffix("_total") for metric in every_metric()}
    assert {family.name.removesuffix("_total") for family in families} - declared == set()
    assert families


def test_all_targets_are_up_and_the_rules_are_loaded(prometheus: Server) -> None:
    def jobs() -> dict[str, str]:
        return {target["scrapePool"]: target["health"] for target in prometheus.ask("targets")["activeTargets"]}

    wait_until(lambda: set(jobs().values()) == {"up"}, DEADLINE_S, POLL_S)
    assert len(jobs()) == len(Endpoint)
    assert {target["lastError"] for target in prometheus.ask("targets")["activeTargets"]} == {""}
    groups = prometheus.ask("rules")["groups"]
    assert {rule["health"] for group in groups for rule in group["rules"]} <= {"ok", "unknown"}
    assert sum(len(group["rules"]) for group in groups) == 14


def test_every_expression_is_evaluated_and_its_metrics_are_there(prometheus: Server) -> None:
    for expression in expressions():
        prometheus.series(expression)
    asked = {name for name in set[str]().union(*map(names_in, expressions())) - UNCOUNTED if not is_statistic(name)}
    wait_until(lambda: all(prometheus.series(f"count({name})") for name in asked), DEADLINE_S, POLL_S)


def is_statistic(name: str) -> bool:
    """Whether it is the collector's, which has to have seen the pod twice."""
    return name.startswith(("container_", "pod_"))


def test_counts_go_on_when_workers_die(watched: Watched, prometheus: Server) -> None:
    def started() -> float:
        found = prometheus.series("sum(kubelet_started_containers_total)")
        return float(found[0]["value"][1]) if found else 0.0

    wait_until(lambda: started() >= 1.0, DEADLINE_S, POLL_S)
    before = started()
    for name in [name for name in watched.agent.workers() if name.startswith("pods-")]:
        watched.agent.kill_and_recover(name)
    watched.agent.run(pod("second"))
    wait_until(lambda: started() == before + 1.0, DEADLINE_S, POLL_S)
    deaths = prometheus.series("sum(rootlet_worker_deaths_total{role='pod-worker'})")
    assert float(deaths[0]["value"][1]) >= 1.0
    assert prometheus.series("resets(kubelet_started_containers_total[10m]) > 0") == []
