"""A real agent for the end-to-end tests: a process of its own, with an instance name that no other run has."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil
import yaml

from tests.e2e.status_observer import Eye
from tests.support import warm_commands
from tests.support.deep_trees import remove_deep
from tests.support.podman_service import PATIENCE, podman_settings, wait_until

Json = dict[str, Any]
Process = subprocess.Popen[bytes] | warm_commands.Started

ROOTLET: Final = "rootlet"
START_DEADLINE_S: Final = 30.0
DEADLINE_S: Final = 45.0
STOP_DEADLINE_S: Final = 60.0 * PATIENCE
CLI_DEADLINE_S: Final = 90.0
ZYGOTE: Final = "rootlet-zygote"
LEAVE_DEADLINE_S: Final = 20.0
GET_DEADLINE_S: Final = 20.0
GET_TRIES: Final = 4
POLL_S: Final = 0.1
LONGEST_POLL_S: Final = 0.4
MOMENT_POLL_S: Final = 0.01
"""When the moment matters."""
LOG_LINES_SHOWN: Final = 60

MARK: Final = "ROOTLET_TEST_AGENT"
"""Environment variable that every process of the agent inherits: how those that were left behind are found."""
LOGS_VARIABLE: Final = "ROOTLET_TEST_LOGS"
"""Environment variable: a directory where the whole log of every agent is kept."""
OF_SESSION: Final = "--exec-process-spec"
"""Option of a conmon that holds an exec session."""
POD_PROCESSES: Final = frozenset(
    {"conmon", "crun", "runc", "slirp4netns", "pasta", "pasta.avx2", "rootlessport", "exe"}
)
"""Programs that belong to containers and stay when the agent goes."""
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
SHARED_MEMORY: Final = Path("/dev/shm")
MEMORY: Final = Path(os.environ.get("XDG_RUNTIME_DIR", "/run/user/0")) / "rootlet-e2e"
"""Below it every agent has a directory for what must not reach a disk."""


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


class House(NamedTuple):
    """Possessions of an agent beside its containers."""

    processes: frozenset[str]
    files: frozenset[str]
    shared_memory: frozenset[str]


def settings(instance: str, directory: Path, changes: Mapping[str, Any]) -> Json:
    """A configuration that waits for nothing long. ``changes`` replace values; sections are merged."""
    base: Json = {
        "apiVersion": "rootlet.dev/v1alpha1",
        "kind": "RootletConfiguration",
        "instanceName": instance,
        "nodeName": "e2e",
        "staticPodPath": str(directory / "manifests"),
        "stateDir": str(directory / "state"),
        "podLogsDir": str(directory / "logs"),
        "memoryDir": str(MEMORY / instance),
        "adminSocket": str(directory / "run" / "agent.sock"),
        "podman": {"service": "own", "store": podman_settings().store},
        "maxPods": 500,
        # The machine of the tests may be short of anything: pods are evicted where a test is about that.
        "evictionHard": {},
        "relistPeriod": "3s",
        "quietRelistPeriod": "9s",
        "fileCheckFrequency": "2s",
        "housekeepingPeriod": "500ms",
        "nodeStatusUpdateFrequency": "1s",
        # Children that are there on demand stay: tests kill them, and count what is there. So do all pod workers.
        "workers": {"count": 2, "podsPerWorker": 0, "maxDeaths": 1000, "idleTimeout": "1h"},
    }
    for name, value in changes.items():
        base[name] = {**base.get(name, {}), **value} if isinstance(value, dict) else value
    return base


class Agent:
    """An instance: its directories, its configuration, and the process while there is one."""

    def __init__(self, instance: str, changes: Mapping[str, Any] | None = None) -> None:
        # Short, because a Unix socket's path may have 107 bytes, and pytest's own directories are long.
        self.directory = Path(tempfile.mkdtemp(prefix="rl-", dir="/tmp"))
        self.instance = instance
        self.eye = Eye(instance)
        self.manifests = self.directory / "manifests"
        self.manifests.mkdir()
        self.log = self.directory / "agent.log"
        self.config = self.directory / "rootlet.yaml"
        self.settings = settings(instance, self.directory, changes or {})
        self.environment: dict[str, str] = {}
        """Added to that of the agent's processes."""
        self.configure({})
        self.socket = Path(self.settings["adminSocket"])
        self.state = Path(self.settings["stateDir"])
        self.memory = Path(self.settings["memoryDir"])
        self.program: tuple[str, ...] = (ROOTLET,)
        """Command that is run as the agent."""
        self.is_warm = False
        """Whether `rootlet` is run in a fork of a process that has imported everything."""
        self._process: Process | None = None
        self._sessions: dict[int, float] = {}
        """Leaders of the sessions of those forks, and when each was created: its environment cannot be read."""

    # --- life ---

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Change the configuration file."""
        self.settings |= changes
        self.config.write_text(yaml.safe_dump(self.settings))

    def spawn(self) -> Process:
        """Run `rootlet run`, whatever becomes of it. It dies with the test session, whatever ends that."""
        arguments = ["run", "--config", str(self.config)]
        environment = {**os.environ, **self.environment, MARK: self.instance}
        with self.log.open("ab", buffering=0) as log:
            if self.is_warm and self.program == (ROOTLET,):
                started = warm_commands.start_agent(arguments, environment, log)
                with contextlib.suppress(psutil.NoSuchProcess):
                    self._sessions[started.pid] = psutil.Process(started.pid).create_time()
                return started
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *self.program, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start(self, *, sources_ready: bool = True, first_look: Callable[[], bool] = lambda: True) -> None:
        """Return when the agent answers, every process of it works and the sources were read (or cannot be).

        ``first_look`` is asked first, from the moment on at which there is a process, until it says yes.
        """
        assert self._process is None, "runs already"
        self._process = self.spawn()
        self.until(first_look, "the first look", START_DEADLINE_S, MOMENT_POLL_S)
        self.until(lambda: self.is_up(sources_ready=sources_ready), "the agent is up", START_DEADLINE_S)

    def respawn(self) -> None:
        """Start it again after its end, as whoever started it would: without waiting for anything."""
        self._process = self.spawn()

    def is_up(self, *, sources_ready: bool) -> bool:
        """Fails when the agent has ended."""
        assert self.process.poll() is None, f"the agent ended with {self.process.returncode}\n{self.story()}"
        try:
            about, workers = self.get("/version"), self.workers()
        except (OSError, http.client.HTTPException):
            return False
        if about["pid"] != self.process.pid or about["sourcesReady"] is not sources_ready:
            return False
        return about["runtimeHealthy"] and all(worker["state"] == "Running" for worker in workers.values())

    @property
    def process(self) -> Process:
        assert self._process is not None, "the agent was not started"
        return self._process

    def wait_end(self, deadline_s: float = STOP_DEADLINE_S) -> int:
        """Exit code, once it has ended of its own accord or because somebody killed it."""
        code = self.process.wait(deadline_s)
        self._process = None
        return code

    def stop(self) -> None:
        """SIGTERM: containers keep running."""
        self.process.send_signal(signal.SIGTERM)
        assert self.wait_end() == 0, self.story()

    def restart(self) -> None:
        self.stop()
        self.start()

    def stop_pods(self) -> None:
        """`rootlet stop --pods`."""
        assert self.cli("stop", "--pods").code == 0
        assert self.wait_end() == 0, self.story()

    def close(self) -> None:
        """Everything goes, whatever state it is in: processes, pods, files."""
        try:
            if self._process is not None:
                self._process.send_signal(signal.SIGTERM)
                self._process.wait(STOP_DEADLINE_S)
        finally:
            for process in self.marked_processes():
                process.kill()
            self.eye.remove_everything()
            self._assert_nothing_leaked()
            if directory := os.environ.get(LOGS_VARIABLE):
                shutil.copy(self.log, Path(directory) / f"{self.instance}.log")
            remove_deep(self.directory)
            shutil.rmtree(self.memory, ignore_errors=True)

    def _assert_nothing_leaked(self) -> None:
        """No monitor of a container has a file of this agent open: those that were removed just now leave at once."""
        try:
            wait_until(lambda: not self.monitors(), LEAVE_DEADLINE_S, POLL_S)
        finally:
            for process in self.monitors():
                for held in (*process.children(), process):
                    held.kill()

    def monitors(self) -> list[psutil.Process]:
        """Every conmon that names one of this agent's files on its command line, and does not end just now. That of an
        exec session stays for ten seconds after its command, as Podman tells it to: it waits for nobody."""
        return [process for process in psutil.process_iter() if _is_monitor(process, str(self.directory))]

    # --- asking the agent ---

    def cli(self, *arguments: str, stdin: str = "") -> Done:
        """Run a command of the command line against this agent."""
        return Done(*warm_commands.run(self.command(*arguments)[1:], stdin, CLI_DEADLINE_S * PATIENCE))

    def command(self, *arguments: str) -> list[str]:
        """The words of that command, for those who run it themselves."""
        return ["rootlet", "--socket", str(self.socket), *arguments]

    @contextlib.contextmanager
    def following(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A command that does not end by itself, and its output."""
        process = subprocess.Popen(self.command(*arguments), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        with process.stdout:
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    def get(self, path: str) -> Json:
        """Any object of the admin socket. Asked again when the API server dies over it, as the command line does.

        Raises OSError and HTTPException when no agent answers.
        """
        for _ in range(GET_TRIES - 1):
            with contextlib.suppress(ConnectionResetError, http.client.HTTPException):
                return _get(self.socket, path)
        return _get(self.socket, path)

    def pods(self) -> dict[str, Json]:
        """v1 pods by name."""
        return {pod["metadata"]["name"]: pod for pod in self.get("/api/v1/pods")["items"]}

    def events(self, name: str = "") -> list[Json]:
        """v1 events, of one object or of all."""
        return [e for e in self.get("/api/v1/events")["items"] if name in ("", e["involvedObject"]["name"])]

    def messages(self, name: str, reason: str) -> list[str]:
        """Messages of the events about a pod that have this reason."""
        return [event["message"] for event in self.events(name) if event["reason"] == reason]

    def reasons(self, name: str) -> dict[str, str]:
        """Reason -> message of the events about a pod."""
        return {event["reason"]: event["message"] for event in self.events(name)}

    def row(self, name: str) -> list[str]:
        """The words of a pod's row in `get pods`: NAME, READY, STATUS, RESTARTS; empty when there is none."""
        return (self.cli("get", "pod", name, "--no-headers").out or "").split()

    def describe(self, name: str) -> str:
        """`describe pod`."""
        return self.cli("describe", "pod", name).out

    def next_try(self, name: str) -> str:
        """Next try of the container ``main``, as `describe` tells it: with the time at which it comes."""
        described = self.describe(name).partition("Next Try:\n")[2]
        return described.partition("\n")[0].partition("main:")[2].strip()

    def workers(self) -> dict[str, Json]:
        """The agent's own processes by name."""
        return {worker["name"]: worker for worker in self.get("/rootlet/v1/workers")["items"]}

    def output(self, name: str, container: str = "main") -> str:
        """Output of a pod's container, all attempts, out of the log files: quicker than asking the agent."""
        files = sorted(Path(self.settings["podLogsDir"]).glob(f"*_{name}_*/{container}/*.log"))
        lines = (line.split(" ", 3) for file in files for line in file.read_text().splitlines())
        return "".join(words[3] + ("\n" if words[2] == "F" else "") for words in lines if len(words) == 4)

    def inside(self, name: str, script: str, container: str = "main") -> str:
        """Output of a shell script in a pod's container, beside what runs there; with its complaints, or those of the
        command line if there is nothing to run it in."""
        done = self.cli("exec", name, "-c", container, "--", "sh", "-c", f"{{ {script}; }} 2>&1")
        return done.out.strip() or done.err.strip()

    def waiting(self, name: str, container: str = "main") -> Json:
        """Reason and message of a pod's container that waits; empty if it does not."""
        state: Json = container_status(self.pods().get(name, {"status": {}}), container).get("state", {})
        found: Json = state.get("waiting", {})
        return found

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    # --- what it wants ---

    def write(self, *manifests: Mapping[str, Any]) -> None:
        """One file per pod, as ``<name>.yaml``."""
        for manifest in manifests:
            self.write_file(f"{manifest['metadata']['name']}.yaml", json.dumps(manifest))

    def write_file(self, name: str, content: str | bytes) -> None:
        """Atomically, as good tools do."""
        new = self.manifests / f".{name}.new"
        new.write_bytes(content.encode() if isinstance(content, str) else content)
        new.replace(self.manifests / name)

    def remove(self, *names: str) -> None:
        """The files of these pods."""
        for name in names:
            (self.manifests / f"{name}.yaml").unlink()

    # --- waiting ---

    def until(
        self, condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S, poll_s: float = POLL_S
    ) -> None:
        """Wait for a condition; fails with the agent's log at the deadline."""
        try:
            wait_until(condition, deadline_s, poll_s, LONGEST_POLL_S if poll_s == POLL_S else poll_s)
        except AssertionError as late:
            raise AssertionError(f"{what}: {late}\n{self.story()}") from late

    def until_ready(self, names: Iterable[str], deadline_s: float = DEADLINE_S) -> None:
        """Every one of these is Running and Ready."""
        wanted = list(names)

        def all_ready() -> bool:
            pods = self.pods()
            return all(name in pods and is_ready(pods[name]) for name in wanted)

        self.until(all_ready, f"{len(wanted)} pods are Ready", deadline_s)

    def until_running(self, names: Iterable[str], deadline_s: float = DEADLINE_S) -> None:
        """Every one of these is Running, ready or not."""
        wanted = list(names)

        def all_run() -> bool:
            pods = self.pods()
            return all(name in pods and pods[name]["status"]["phase"] == "Running" for name in wanted)

        self.until(all_run, f"{len(wanted)} pods run", deadline_s)

    def until_gone(self, names: Iterable[str], deadline_s: float = DEADLINE_S) -> None:
        """For the agent, and in Podman."""
        unwanted = set(names)
        self.until(lambda: unwanted.isdisjoint(self.pods()), f"{sorted(unwanted)} are gone", deadline_s)
        left = [c for c in self.eye.containers(infra=True) if c.pod in unwanted]
        assert not left, f"the agent says that they are gone: {left}"

    def run(self, *manifests: Mapping[str, Any]) -> None:
        """Write these and wait until they are Ready."""
        self.write(*manifests)
        self.until_ready(manifest["metadata"]["name"] for manifest in manifests)

    def assert_works(self, manifest: Mapping[str, Any]) -> None:
        """A new pod goes through all of it, and away again."""
        name = manifest["metadata"]["name"]
        self.run(manifest)
        self.remove(name)
        self.until_gone([name])

    # --- its processes ---

    def processes(self) -> dict[str, int]:
        """Pids by role: master, zygote, and the workers by their names."""
        # Beside the zygote there is, for a moment, the program that decodes a heavy manifest.
        (zygote,) = (each for each in psutil.Process(self.process.pid).children() if each.name() == ZYGOTE)
        workers = {name: worker["pid"] for name, worker in self.workers().items()}
        return {"master": self.process.pid, "zygote": zygote.pid, **workers}

    def kill(self, role: str, signum: int = signal.SIGKILL) -> None:
        os.kill(self.processes()[role], signum)

    def kill_and_recover(self, role: str, when: Callable[[], bool] = lambda: True) -> None:
        """kill -9 as soon as the condition holds; back when the agent is whole again. Without its master or zygote
        there is none: it is started anew."""
        before, pid = self.workers().get(role), self.processes()[role]
        self.until(when, f"the moment to kill {role}", poll_s=MOMENT_POLL_S)
        os.kill(pid, signal.SIGKILL)
        if before is None:
            assert self.wait_end() == {"master": -signal.SIGKILL, "zygote": 1}[role]
            self.start()
        else:
            self.until(lambda: self._is_replaced(before), f"{role} is replaced")

    def _is_replaced(self, before: Json) -> bool:
        now = self.workers()[before["name"]]
        return bool(now["incarnation"] > before["incarnation"] and now["state"] == "Running")

    def marked_processes(self) -> list[psutil.Process]:
        """Every process that stems from the agent and is not part of a pod."""
        return [process for process in psutil.process_iter() if self._is_marked(process)]

    def _is_marked(self, process: psutil.Process) -> bool:
        try:
            is_ours = process.environ().get(MARK) == self.instance or self._is_of_session(process)
            return is_ours and not _belongs_to_pod(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess, ProcessLookupError):
            return False  # another user's, or gone

    def _is_of_session(self, process: psutil.Process) -> bool:
        """Of a session that a fork leads, or has led until it ended."""
        leader = os.getsid(process.pid)
        if leader not in self._sessions:
            return False
        try:
            return psutil.Process(leader).create_time() == self._sessions[leader]
        except psutil.NoSuchProcess:
            return True

    def house(self) -> House:
        """Possessions of the agent now. Names only: pids change."""
        roles = {pid: role for role, pid in self.processes().items()} if self._process is not None else {}
        processes = (roles.get(p.pid, f"stranger {p.pid} {_command_line(p)}") for p in self.marked_processes())
        runtime = self.socket.parent
        return House(
            processes=frozenset(processes),
            files=frozenset(os.listdir(runtime)) if runtime.exists() else frozenset(),
            shared_memory=frozenset(n for n in files_of_this_user(SHARED_MEMORY) if not n.startswith("libpod")),
        )

    def story(self) -> str:
        """Facts that one needs to know when a test has failed."""
        lines = self.log_text().splitlines()
        return "\n".join([f"--- the end of the log of {self.instance}:", *lines[-LOG_LINES_SHOWN:]])


def free_ports(count: int) -> list[int]:
    """Numbers that nobody listens on just now."""
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [sock.getsockname()[1] for sock in socks]


def files_of_this_user(directory: Path) -> list[str]:
    """Names of regular files. Simulations and tests beside us have directories there, which come and go."""
    with os.scandir(directory) as entries:
        found = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
        return [entry.name for entry in found if entry.stat(follow_symlinks=False).st_uid == os.getuid()]


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("agent", timeout=GET_DEADLINE_S * PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _get(path_of_socket: Path, path: str) -> Json:
    with contextlib.closing(_UnixConnection(path_of_socket)) as connection:
        connection.request("GET", path)
        with connection.getresponse() as response:
            body = response.read()
            assert response.status == 200, body.decode()
            found: Json = json.loads(body)
            return found


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Running, and its Ready condition is True."""
    status = pod["status"]
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions", ())}
    return bool(status["phase"] == "Running" and conditions.get("Ready") == "True")


def container_status(pod: Mapping[str, Any], name: str = "main") -> Json:
    """Status of one container of whatever kind; empty before the first report."""
    statuses = (status for field in _STATUSES for status in pod["status"].get(field, ()))
    found: Json = next((status for status in statuses if status["name"] == name), {})
    return found


def restart_count(pod: Mapping[str, Any], name: str = "main") -> int:
    return int(container_status(pod, name).get("restartCount", 0))


def _is_monitor(process: psutil.Process, directory: str) -> bool:
    try:
        words = process.cmdline() if process.name() == "conmon" else []
        # A session has two, one below the other.
        is_over = OF_SESSION in words and {child.name() for child in process.children(recursive=True)} <= {"conmon"}
        return not is_over and any(f"{directory}/" in word for word in words)
    except (psutil.ZombieProcess, psutil.NoSuchProcess):
        return False


def _belongs_to_pod(process: psutil.Process) -> bool:
    """conmon runs `podman container cleanup` when its container ends."""
    return process.name() in POD_PROCESSES or "cleanup" in process.cmdline() or process.status() == psutil.STATUS_ZOMBIE


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return "(gone)"
