"""The agent as a process, without any Podman: who may run, what it says, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from supervisor.state.directory_owner import OWNER_FILE
from tests.support.podman_service import wait_until
from tests.support.raw_libpod import UnixConnection

pytestmark = pytest.mark.process

DEADLINE_S = 20.0
LARGE_DEADLINE_S = 90.0
"""For pods whose manifests are decoded apart, by a program that is in nobody's way."""
LARGE_PODS = 40
LARGE_VALUES = 30
LARGE_VALUE_BYTES = 30_000
"""All variables of all large pods are 36 MB, more than waits for one reader in any case."""
ROOTLET = [sys.executable, "-m", "supervisor"]
TREE = Path(__file__).parents[2]
SPEC = "{containers: [{name: main, image: localhost/none}]}"


class Instance:
    """A configuration, and the agents that were started with it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config = directory / "rootlet.yaml"
        self.socket = directory / "run" / "agent.sock"
        self.log = directory / "agent.log"
        self.settings: dict[str, Any] = {
            "apiVersion": "rootlet.dev/v1alpha1",
            "kind": "RootletConfiguration",
            "instanceName": "alone",
            "nodeName": "alone",
            "staticPodPath": "manifests",
            "stateDir": "state",
            "memoryDir": "memory",
            "podLogsDir": "logs",
            "adminSocket": str(self.socket),
            "containerRuntimeEndpoint": f"unix://{directory}/nobody.sock",
            "workers": {"count": 1},
            "evictionHard": {},
        }
        (directory / "manifests").mkdir()
        self.configure()
        self.started: list[subprocess.Popen[bytes]] = []

    def configure(self, **changes: Any) -> None:
        self.settings |= changes
        self.config.write_text(yaml.safe_dump(self.settings))

    def start(self, *inherited: int) -> subprocess.Popen[bytes]:
        """``inherited``: descriptors that are left open for it."""
        with self.log.open("ab") as log:
            command = ["setpriv", "--pdeathsig", "KILL", *ROOTLET, "run", "--config", str(self.config)]
            process = subprocess.Popen(
                command, cwd=TREE, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=inherited
            )
        self.started.append(process)
        return process

    def start_and_wait(self) -> subprocess.Popen[bytes]:
        process = self.start()
        self.until(lambda: self.cli("get", "workers").returncode == 0, process)
        return process

    def until(self, condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
        def holds() -> bool:
            assert process.poll() is None, self.log.read_text()
            return condition()

        wait_until(holds, DEADLINE_S, 0.1)

    def conditions(self) -> dict[str, str]:
        """Statuses of the node's conditions, by type."""
        with contextlib.closing(UnixConnection(str(self.socket))) as connection:
            connection.request("GET", "/api/v1/nodes/alone")
            node = json.loads(connection.getresponse().read())
        return {condition["type"]: condition["status"] for condition in node["status"]["conditions"]}

    def log_lines(self, words: str) -> list[str]:
        """The whole lines of its log that contain these words."""
        return [line for line in self.log.read_text().splitlines(keepends=True) if words in line and line[-1] == "\n"]

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return rootlet("--socket", str(self.socket), *arguments)


def rootlet(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ROOTLET, *arguments], cwd=TREE, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


def is_alive(process: psutil.Process) -> bool:
    """An orphan that nobody reaps has ended all the same."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def instance() -> Iterator[Instance]:
    directory = Path(tempfile.mkdtemp(prefix="rl-", dir="/tmp"))  # short: a Unix socket's path may have 107 bytes
    made = Instance(directory)
    try:
        yield made
    finally:
        for process in made.started:
            process.terminate()
            process.wait(DEADLINE_S)
        shutil.rmtree(directory)


def test_a_soft_limit_of_processes_is_raised(instance: Instance) -> None:
    """Podman gives containers the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    lower = 20_000 if hard == resource.RLIM_INFINITY else hard // 2
    resource.setrlimit(resource.RLIMIT_NPROC, (lower, hard))
    try:
        agent = instance.start_and_wait()
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    family = [psutil.Process(agent.pid), *psutil.Process(agent.pid).children(recursive=True)]
    assert {process.rlimit(psutil.RLIMIT_NPROC) for process in family} == {(hard, hard)}


def test_without_an_agent_every_question_is_answered_with_one_line(instance: Instance) -> None:
    for command in (["get", "pods"], ["describe", "pod", "x"], ["logs", "x"], ["stop"], ["get", "events", "-w"]):
        done = instance.cli(*command)
        assert (done.returncode, done.stdout) == (1, ""), command
        assert done.stderr == f"rootlet: no agent answers on {instance.socket}: start one with 'rootlet run'\n"


def test_a_second_agent_of_the_instance_says_so_and_ends(instance: Instance) -> None:
    first = instance.start_and_wait()
    second = rootlet("run", "--config", str(instance.config))
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr.count("\n") == 1
    assert f"runs already (pid {first.pid}" in second.stderr
    assert instance.cli("get", "workers").returncode == 0, "the first one still answers"
    assert f'"pid": {first.pid}' in instance.cli("version", "-o", "json").stdout


def test_a_wrong_configuration_names_its_path_and_exits_2(instance: Instance) -> None:
    instance.configure(workers={"count": "many"})
    for command in (["config", "check", str(instance.config)], ["run", "--config", str(instance.config)]):
        done = rootlet(*command)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "workers.count" in done.stderr
        assert str(instance.config) in done.stderr
    instance.configure(workers={"count": 1, "cuont": 1})
    done = rootlet("config", "check", str(instance.config))
    assert (done.returncode, "workers.cuont" in done.stderr) == (2, True)
    instance.configure(workers={"count": 1})
    assert rootlet("config", "check", str(instance.config)).returncode == 0


def test_reload_takes_over_what_can_change_and_names_the_rest(instance: Instance) -> None:
    process = instance.start_and_wait()
    instance.configure(maxPods=7, relistPeriod="20s")
    process.send_signal(signal.SIGHUP)
    told = "relistPeriod: needs a restart\n"
    instance.until(lambda: told in instance.log.read_text(), process)
    pods = (f"---\n{{apiVersion: v1, kind: Pod, metadata: {{name: p{n}}}, spec: {SPEC}}}\n" for n in range(9))
    (instance.directory / "manifests" / "pods.yaml").write_text("".join(pods))
    instance.until(lambda: instance.cli("get", "events").stdout.count("OutOfpods") == 2, process)
    instance.configure(maxPods="lots")
    process.send_signal(signal.SIGHUP)
    instance.until(lambda: bool(instance.log_lines("configuration not reloaded")), process)
    (refused,) = instance.log_lines("configuration not reloaded")
    assert "maxPods" in refused


def test_every_process_takes_another_verbosity_while_it_runs(instance: Instance) -> None:
    instance.configure(logging={"format": "json"}, workers={"count": 1, "heartbeatTimeout": "2s"})
    process = instance.start_and_wait()

    def changed_to(words: str) -> set[str]:
        lines = [json.loads(line) for line in instance.log_lines(f"log levels are now: {words}")]
        assert all(line["v"] == 4 and line["caller"].startswith("shm/") for line in lines)
        return {line["process"].partition("-")[0] for line in lines}

    done = instance.cli("loglevel", "followed_verbosity=warning", "debug", "shm=4")
    assert (done.returncode, done.stdout) == (1, ""), "the first is no area"
    done = instance.cli("loglevel", "shm.followed_verbosity=debug", "warning")
    assert (done.returncode, done.stdout) == (0, "warning\nshm.followed_verbosity=debug\n"), done.stderr
    everybody = {"node", "api", "dial", "pods"}
    instance.until(lambda: changed_to("warning, shm.followed_verbosity=debug") == everybody, process)
    instance.configure(logging={"format": "json", "verbosity": 4}, workers={"count": 1, "heartbeatTimeout": "2s"})
    process.send_signal(signal.SIGHUP)
    instance.until(lambda: changed_to('debug"') == everybody, process)
    assert instance.cli("loglevel").stdout == "debug\n"


def test_conditions_of_pressure_are_told_when_they_are_known(instance: Instance) -> None:
    instance.configure(nodeStatusUpdateFrequency="1h")
    process = instance.start_and_wait()
    known = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "False"}
    instance.until(lambda: instance.conditions() == known, process)


def test_each_process_is_profiled_by_its_name(instance: Instance) -> None:
    instance.start_and_wait()

    def profile(name: str, process: str, more: str = "") -> tuple[int, str]:
        connection = UnixConnection(str(instance.socket))
        connection.request("GET", f"/debug/pprof/{name}?process={process}{more}")
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    modules = {"master": "master.", "node": "node_worker.", "pods-0": "pod_worker.", "api": "server."}
    for process, module in modules.items():
        code, text = profile("goroutine", process)
        assert (code, text.startswith("task profile: total ")) == (200, True)
        assert f"{module}py" in text, text
        assert profile("heap", process)[0] == 400
        assert profile("heap", process, "&start=1")[0] == 200
        assert profile("heap", process)[1].startswith("heap profile: ")
        assert profile("heap", process, "&stop=1")[0] == 200
    code, text = profile("profile", "node", "&seconds=1")
    assert code == 200
    assert all(line.rpartition(" ")[2].isdigit() for line in text.splitlines())
    assert "main.main;" in text
    for other in ("dialer", "podman", "nobody"):
        code, text = profile("goroutine", other)
        assert (code, "there are no profiles" in text) == (404, True)


def test_systemds_watchdog_is_fed_by_a_master_that_goes_on_and_starves_when_it_hangs(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(instance.directory / "notify"))
        systemd.settimeout(DEADLINE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", systemd.getsockname())
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        process = instance.start()
        heard: set[bytes] = set()
        while heard < {b"READY=1", b"WATCHDOG=1"}:
            heard.add(systemd.recv(100))
        process.send_signal(signal.SIGSTOP)
        instance.until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED, process)
        systemd.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while systemd.recv(100):
                pass
        systemd.settimeout(1.5)  # it was told each second
        with pytest.raises(TimeoutError):
            systemd.recv(100)
        process.send_signal(signal.SIGCONT)
        systemd.settimeout(DEADLINE_S)
        assert systemd.recv(100) == b"WATCHDOG=1"
        process.send_signal(signal.SIGABRT)  # as systemd does
        assert process.wait(DEADLINE_S) == -signal.SIGABRT
    assert instance.log_lines("most recent call first"), "where it hung"


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_an_orderly_end_leaves_nothing(instance: Instance, signum: int) -> None:
    process = instance.start_and_wait()
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) == 5, "zygote, node worker, API server, dialer, one pod worker"
    process.send_signal(signum)
    assert process.wait(DEADLINE_S) == 0
    assert not any(map(is_alive, family))
    assert os.listdir(instance.socket.parent) == ["agent.lock"]


@pytest.mark.parametrize("victim", ["master", "zygote"])
def test_when_the_master_or_the_zygote_is_killed_all_go_and_a_successor_takes_over(
    instance: Instance, victim: str
) -> None:
    process = instance.start_and_wait()
    family = psutil.Process(process.pid).children(recursive=True)
    (zygote,) = psutil.Process(process.pid).children()
    os.kill({"master": process.pid, "zygote": zygote.pid}[victim], signal.SIGKILL)
    successor = instance.start()
    assert process.wait(DEADLINE_S) == {"master": -signal.SIGKILL, "zygote": 1}[victim]
    instance.until(lambda: f'"pid": {successor.pid}' in instance.cli("version", "-o", "json").stdout, successor)
    assert not any(map(is_alive, family))


def test_a_podman_service_that_cannot_live_ends_the_agent(instance: Instance) -> None:
    instance.configure(
        containerRuntimeEndpoint="",
        podman={"service": "own", "path": shutil.which("false")},
        workers={"count": 1, "maxDeaths": 3},
    )
    process = instance.start()
    assert process.wait(DEADLINE_S) == 1
    assert "more than 3 child deaths" in instance.log.read_text()
    assert not instance.socket.exists()


def test_no_agent_starts_on_the_logs_of_another_instance(instance: Instance) -> None:
    (instance.directory / "logs").mkdir()
    (instance.directory / "logs" / OWNER_FILE).write_text("other\n")
    assert instance.start().wait(DEADLINE_S) == 1
    assert f"{instance.directory}/logs belongs to the instance 'other'" in instance.log.read_text()
    assert not instance.socket.exists()


def test_no_child_holds_what_was_left_open_for_the_agent(instance: Instance) -> None:
    """Podman's service least of all, which may outlive it: a pipe ends when its last writer has."""
    service = instance.directory / "podman"
    seen = instance.directory / "descriptors"
    service.write_text(f"#!/bin/sh\nls -l /proc/$$/fd >{seen}.new; mv {seen}.new {seen}; exec sleep 1000\n")
    service.chmod(0o755)
    instance.configure(containerRuntimeEndpoint="", podman={"service": "own", "path": str(service)})
    reading, writing = os.pipe()
    process = instance.start(writing)
    pipe = os.readlink(f"/proc/self/fd/{writing}")
    os.close(writing)
    instance.until(seen.exists, process)
    instance.until(lambda: instance.cli("get", "workers").returncode == 0, process)
    family = [process.pid, *(child.pid for child in psutil.Process(process.pid).children(recursive=True))]
    assert len(family) > 3
    assert all(pipe not in descriptors(pid) for pid in family)
    assert pipe not in seen.read_text()
    assert os.read(reading, 1) == b"", "nobody could write to it any more"
    os.close(reading)


def descriptors(pid: int) -> list[str]:
    """Files that the descriptors of a process lead to."""
    return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]


def test_directories_that_were_open_to_others_are_closed(instance: Instance) -> None:
    names = ("state", "logs", "memory")
    for name in names:
        (instance.directory / name).mkdir()
        (instance.directory / name).chmod(0o755)
    instance.start_and_wait()
    assert {stat.S_IMODE((instance.directory / name).stat().st_mode) for name in names} == {0o700}


def write_large_pods(directory: Path, edit: str) -> None:
    """Every pod anew; nothing of a file is seen before it is whole."""
    env = [{"name": f"V{number}", "value": edit + "x" * LARGE_VALUE_BYTES} for number in range(LARGE_VALUES)]
    container = {"name": "main", "image": "localhost/none", "imagePullPolicy": "Never", "env": env}
    for number in range(LARGE_PODS):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"large-{number}"},
            "spec": {"containers": [container]},
        }
        written = directory / f".{number}"
        written.write_text(json.dumps(pod))
        written.replace(directory / f"{number}.json")


def edits(instance: Instance) -> list[str]:
    """First letter of a variable of each pod, as the API server tells them."""
    with contextlib.closing(UnixConnection(str(instance.socket))) as connection:
        connection.request("GET", "/pods")
        found = json.loads(connection.getresponse().read())["items"]
    return [pod["spec"]["containers"][0]["env"][0]["value"][0] for pod in found]


def api_server(instance: Instance) -> psutil.Process:
    rows = instance.cli("get", "workers", "-o", "json")
    [pid] = [row["pid"] for row in json.loads(rows.stdout)["items"] if row["name"] == "api"]
    return psutil.Process(pid)


def stop_while(process: psutil.Process, times: int) -> Iterator[None]:
    """Stop a process again whenever somebody has continued it."""
    for _ in range(times):
        process.suspend()
        yield
        wait_until(lambda: process.status() != psutil.STATUS_STOPPED, DEADLINE_S, 0.05)


@pytest.mark.timeout(300)
def test_an_api_server_that_does_not_read_ends_with_every_pod_as_it_is(instance: Instance) -> None:
    """A stop while all pods come, and others while all of them change, leave the API server the same process."""
    agent = instance.start_and_wait()
    served = api_server(instance)
    manifests = instance.directory / "manifests"
    for edit in "ab":
        for _ in stop_while(served, 2):
            write_large_pods(manifests, edit)
    wait_until(lambda: edits(instance) == ["b"] * LARGE_PODS, LARGE_DEADLINE_S, 0.2)
    assert api_server(instance).pid == served.pid
    served.send_signal(signal.SIGKILL)
    wait_until(lambda: edits(instance) == ["b"] * LARGE_PODS, LARGE_DEADLINE_S, 0.2)
    assert agent.poll() is None
