"""httpGet hooks reach servers in pods without a published port, through the agent's dialer."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Final

import psutil
import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import Json, container, pod
from tests.support.variants import seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PORT: Final = 8080
VISITS: Final = 2
PODS_PER_VISIT: Final = 10
LISTENS: Final = f"until wget -q -O /dev/null http://127.0.0.1:{PORT}/etc/passwd; do sleep 0.05; done"


def server() -> Json:
    """A web server that ignores SIGTERM, as the first process of a container does, and tells what it is asked."""
    made = container("server", lifecycle={"postStart": {"exec": {"command": ["sh", "-c", LISTENS]}}})
    ports = [{"name": "web", "containerPort": PORT}]
    return {**made, "command": ["httpd", "-f", "-vv", "-p", str(PORT)], "ports": ports}


def get(path: str, **more: Any) -> Json:
    return {"httpGet": {"path": path, "port": PORT, **more}}


def asked(agent: Agent, name: str) -> list[str]:
    """The paths that the pod's server was asked for by hooks, in order. busybox before 1.38 writes ``url:/hook/x``."""
    logs = sorted(Path(agent.settings["podLogsDir"]).glob(f"*_{name}_*/server/*.log"))
    words = [word.removeprefix("url:") for log in logs for word in log.read_text().split()]
    return [word for word in words if word.startswith("/hook")]


def test_hooks_are_requests_to_the_pod(agent: Agent) -> None:
    hooks = {"postStart": get("/hook/started"), "preStop": get("/hook/stopping")}
    # A hook has succeeded whatever the server answers, here 404.
    agent.run(pod("asks", server(), container(lifecycle=hooks), terminationGracePeriodSeconds=3))
    agent.until(lambda: asked(agent, "asks") == ["/hook/started"], "the postStart hook was run")
    seen: list[str] = []

    def is_asked() -> bool:
        seen[:] = asked(agent, "asks") or seen
        return seen == ["/hook/started", "/hook/stopping"]

    agent.remove("asks")
    agent.until(is_asked, "the preStop hook was run")
    agent.until_gone(["asks"])
    assert "FailedPreStopHook" not in agent.reasons("asks")


def test_a_port_by_its_name_also_without_the_manifest(agent: Agent) -> None:
    """The agent that stops the pod has never seen its manifest: the label says where the hook goes."""
    main = {**server(), "name": "server"}
    main["lifecycle"] = {**main["lifecycle"], "preStop": get("/hook/named", port="web")}
    agent.run(pod("named", main, terminationGracePeriodSeconds=3))
    agent.stop()
    (agent.manifests / "named.yaml").unlink()
    (agent.state / "checkpoint.json").unlink(missing_ok=True)
    seen: list[str] = []

    def is_asked() -> bool:
        seen[:] = asked(agent, "named") or seen
        return bool(seen)

    agent.start()
    agent.until(is_asked, "the preStop hook was run")
    assert seen == ["/hook/named"]
    agent.until_gone(["named"])


def test_a_hook_that_nobody_answers_takes_the_container_down(agent: Agent) -> None:
    main = container(lifecycle={"postStart": {"httpGet": {"port": 9}}})
    agent.write(pod("nobody", main))
    agent.until(lambda: "FailedPostStartHook" in agent.reasons("nobody"), "the hook has failed")
    agent.until(lambda: "BackOff" in agent.reasons("nobody"), "it waits for its next start")
    agent.remove("nobody")
    agent.until_gone(["nobody"])


@pytest.mark.slow
def test_https_answered_by_http_falls_back(agent: Agent) -> None:
    hooks = {"postStart": get("/hook/plain", scheme="HTTPS")}
    agent.run(pod("plain", server(), container(lifecycle=hooks), terminationGracePeriodSeconds=1))
    agent.until(lambda: asked(agent, "plain") == ["/hook/plain"], "the hook was run")
    agent.until(lambda: "LifecycleHTTPFallback" in agent.reasons("plain"), "that is told")
    agent.remove("plain")
    agent.until_gone(["plain"])


class AppState(BaseHTTPRequestHandler):
    """A server on the host."""

    paths: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.paths.append(f"{self.path} {self.headers['User-Agent']}")
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@pytest.fixture
def site() -> Iterator[int]:
    """Port of a site."""
    AppState.paths.clear()
    with ThreadingHTTPServer(("0.0.0.0", 0), AppState) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running.server_address[1]
        running.shutdown()
        thread.join()


def test_a_pod_in_the_hosts_network_and_another_host(agent: Agent, site: int) -> None:
    """Such a pod's address is the host's; a host that is named is reached from the host, as upstream."""
    own = container(lifecycle={"postStart": {"httpGet": {"path": "/own", "port": site}}})
    named = container(lifecycle={"postStart": {"httpGet": {"path": "/named", "port": site, "host": "127.0.0.1"}}})
    agent.run(pod("in-host", own, hostNetwork=True), pod("to-host", named))
    agent.until(lambda: len(AppState.paths) == 2, "both hooks were run")
    assert sorted(AppState.paths) == ["/named kube-lifecycle/1.36", "/own kube-lifecycle/1.36"]
    agent.remove("in-host", "to-host")
    agent.until_gone(["in-host", "to-host"])


@pytest.mark.parametrize(
    ("signum", "deaths"), [pytest.param(signal.SIGKILL, 1, id="dies"), seldom(signal.SIGSTOP, 0, id="stops")]
)
def test_a_dialer_that_goes_delays_hooks_and_fails_none(new_agent: Any, signum: signal.Signals, deaths: int) -> None:
    """One that dies is replaced; one that somebody has stopped is continued."""
    agent = new_agent()
    agent.start()
    agent.run(pod("first", server(), container(lifecycle={"postStart": get("/hook/1")})))
    before = agent.workers()["dialer"]
    agent.kill("dialer", signum)
    agent.run(pod("second", server(), container(lifecycle={"postStart": get("/hook/2")})))
    agent.until(lambda: asked(agent, "second") == ["/hook/2"], "the hook was run, once there is a dialer")
    agent.until(lambda: agent.workers()["dialer"]["state"] == "Running", "there is a dialer")
    now = agent.workers()["dialer"]
    assert (now["incarnation"], now["deaths"]) == (before["incarnation"] + deaths, before["deaths"] + deaths)
    assert "FailedPostStartHook" not in agent.reasons("second")


@pytest.mark.slow
def test_nothing_is_kept_of_pods_that_were_dialled(agent: Agent) -> None:
    """Connections to Podman are kept, a few in each process, and how many depends on how many calls met."""

    def files() -> int:
        return sum(psutil.Process(pid).num_fds() for role, pid in agent.processes().items() if role != "podman")

    def visit(number: int) -> None:
        names = [f"visit-{number}-{pod_number}" for pod_number in range(PODS_PER_VISIT)]
        hooked = container(lifecycle={"postStart": get("/hook")})
        agent.run(*(pod(name, server(), hooked, terminationGracePeriodSeconds=1) for name in names))
        agent.remove(*names)
        agent.until_gone(names)

    visit(0)
    house, before = agent.house(), files()
    for number in range(1, 1 + VISITS):
        visit(number)
    few = before + VISITS * PODS_PER_VISIT
    agent.until(lambda: files() < few, f"less than one more file is open for each pod: {before} were")
    agent.until(lambda: agent.house() == house, "nothing else is there")
