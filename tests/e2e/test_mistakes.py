"""A person's mistakes, and the whole answer to each: `mistakes.txt` is the catalogue.

``ROOTLET_WRITE_MISTAKES=FILE`` writes it anew, as the answers are now.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import container, pod
from tests.support.cli import Outcome, run_here
from tests.support.transcript import Step, read_transcript, write_transcript

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

CATALOGUE: Final = Path(__file__).with_name("mistakes.txt")
WRITE: Final = "ROOTLET_WRITE_MISTAKES"
LEAST: Final = 150
INTERNAL: Final = re.compile(r"\b(slots?|incarnations?|stated|states|looks?|looked|Traceback|Errno|errno)\b")
HEAD: Final = "apiVersion: rootlet.dev/v1alpha1\nkind: RootletConfiguration\n"
POD: Final = "apiVersion: v1\nkind: Pod\nmetadata: {name: mistake}\n"
LIMITS: Final = "resources: {limits:"
FILES: Final = {
    "web.yaml": f"{POD}spec: {{containers: [{{name: main, image: busybox}}]}}\n",
    "empty.yaml": "",
    "nosuffix": POD,
    "unreadable.yaml": POD,
    "binary.yaml": "\x00\x01\x02\x03",
    "large.yaml": "a: " + "b" * 1_100_000,
    "tab.yaml": "kind:\tPod\n\tx: y\n",
    "anchor.yaml": f"{POD}spec: *none\n",
    "twice.yaml": f"{POD}---\n{POD}",
    "text.yaml": "hello\n",
    "list.yaml": "- 1\n- 2\n",
    "deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
    "nokind.yaml": "apiVersion: v1\nmetadata: {name: web}\n",
    "noname.yaml": "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: main, image: busybox}]}\n",
    "badname.yaml": POD.replace("mistake", "Bad_Name") + "spec: {containers: [{name: main, image: busybox}]}\n",
    "typo.yaml": f"{POD}spec: {{conainers: [{{name: main, image: busybox}}]}}\n",
    "typos.yaml": f"{POD}spec: {{restartPolicy: Allways, containers: [{{name: Main, image: '', imagee: x}}]}}\n",
    "noimage.yaml": f"{POD}spec: {{containers: [{{name: main}}]}}\n",
    "held.yaml": POD.replace("mistake", "held") + "spec: {containers: [{name: main, image: busybox}]}\n",
    "memory.yaml": f"{POD}spec: {{containers: [{{name: main, image: b, resources: {{limits: {{memory: 64q}}}}}}]}}\n",
    "thousandth.yaml": f"{POD}spec: {{containers: [{{name: m, image: b, {LIMITS} {{ephemeral-storage: 64m}}}}}}]}}\n",
    "gpu.yaml": f"{POD}spec: {{containers: [{{name: m, image: b, {LIMITS} {{example.org/gpu: 1}}}}}}]}}\n",
    "volume.yaml": f"{POD}spec: {{containers: [{{name: m, image: b}}], volumes: [{{name: v, nfs: {{server: s}}}}]}}\n",
    "nosuch-pod.yaml": POD.replace("mistake", "nosuch") + "spec: {containers: [{name: main, image: busybox}]}\n",
    "settings-kind.yaml": "apiVersion: v1\nkind: Pod\n",
    "settings-broken.yaml": HEAD + "maxPods: many\nsyncFrequency: 1\nworkers: {count: 99}\nlogging: {format: xml}\n",
    "settings-unknown.yaml": f"{HEAD}maxPod: 3\nworkers: {{cuont: 1}}\n",
    "settings-path.yaml": f"{HEAD}stateDir: $NOSUCH/x\npodNetwork: {{bridge: b}}\n",
}


@pytest.fixture(scope="module")
def ready(agent: Agent) -> Agent:
    """An agent with a pod that runs, one that has ended, and one of a manifest directory."""
    done = pod("done", container(script="true"), restartPolicy="Never")
    agent.write(pod("web"), pod("held"), done)
    agent.until_ready(["web", "held"])
    agent.until(lambda: agent.pods()["done"]["status"]["phase"] == "Succeeded", "done has ended")
    return agent


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, with what somebody can get wrong in it."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    for name in ("empty", "unreadable", "closed"):
        (tmp_path / name).mkdir()
    os.mkfifo("fifo")
    Path("loop.yaml").symlink_to("loop.yaml")
    Path("dangling.yaml").symlink_to("nowhere")
    with contextlib.ExitStack() as stack:
        for name, kind in (("dead.sock", socket.SOCK_STREAM), ("datagram.sock", socket.SOCK_DGRAM)):
            made = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            made.bind(name)
            if name == "dead.sock":
                made.close()
        stack.enter_context(another_program("other.sock"))
        for name in ("unreadable.yaml", "unreadable", "closed"):
            os.chmod(name, 0)
        yield tmp_path
        for name in ("unreadable", "closed"):
            os.chmod(name, 0o700)


@contextlib.contextmanager
def another_program(path: str) -> Iterator[None]:
    """A program that listens, and speaks no HTTP."""

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(ConnectionError):
                    connection.recv(65536)
                    connection.sendall(b"220 mail.example ESMTP\r\n")

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_each_mistake_has_its_answer(ready: Agent, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(directory))
    catalogue = list(read_transcript(CATALOGUE.read_text()))
    assert sum(isinstance(step, Step) for step in catalogue) >= LEAST
    answered = [step if isinstance(step, str) else answer(ready, directory, step) for step in catalogue]
    if file := os.environ.get(WRITE):
        Path(file).write_text(write_transcript(iter(answered)))
    different = [(old, new) for old, new in zip(catalogue, answered, strict=True) if old != new]
    assert not different, "\n".join(f"was: {old}now: {new}" for old, new in different)


def answer(agent: Agent, directory: Path, step: Step) -> Step:
    words = ["x" * 120 if word == "LONG" else word for word in step.words]
    where = (
        [] if any(word.startswith(("--socket", "--instance")) for word in words) else ["--socket", str(agent.socket)]
    )
    found: Outcome = run_here(*where, *words)
    return Step(step.command, shown(agent, directory, found.out), shown(agent, directory, found.err), found.code)


def shown(agent: Agent, directory: Path, text: str) -> str:
    for path, name in ((str(agent.socket), "SOCKET"), (str(directory), "DIR"), ("x" * 120, "LONG")):
        text = text.replace(path, name)
    return re.sub(r"\(default/web/[0-9a-f-]{36}\)|\b[0-9a-f]{64}\b", "ID", text)


def test_no_answer_has_an_internal_word_or_is_silent() -> None:
    steps = [step for step in read_transcript(CATALOGUE.read_text()) if isinstance(step, Step)]
    assert [step for step in steps if INTERNAL.search(step.err + step.out)] == []
    assert [step for step in steps if step.code and not step.err] == []


# --- streams and signals, of real processes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "err"),
    [
        ("get pods >/dev/full", 1, "error: the output cannot be written: no space is left on the device\n"),
        ("get pods -o json >/dev/full", 1, "error: the output cannot be written: no space is left on the device\n"),
        ("help >/dev/full", 1, "error: the output cannot be written: no space is left on the device\n"),
        ("logs web >/dev/full", 0, ""),
        ("get pods >&-", 0, ""),
        ("get pods <&- >/dev/null", 0, ""),
        ("exec web -- sh -c 'exit 3'", 3, "command terminated with exit code 3\n"),
        ("apply -f - <&-", 1, "rootlet: -: standard input is closed\n"),
        ("get nosuch 2>&-", 1, ""),
        ("get nosuch 2>/dev/full", 1, ""),
        ("help | true", 0, ""),
        ("get pods $'\\xff'", 1, "error: '\\udcff' is not text in UTF-8\n"),
        ("apply -f $'\\xff.yaml'", 1, "rootlet: \\udcff.yaml: No such file or directory\n"),
    ],
)
def test_streams(ready: Agent, line: str, code: int, err: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"rootlet --socket {ready.socket} {line}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, err)


ABSENT: Final = "log in (su and sudo make none), or set XDG_RUNTIME_DIR to that of the agent"
LOGGED: Final = re.compile(r"\S+Z (?:INFO|WARNING|ERROR) master: ")
OF_ROOT: Final = "only its own user can ask it: run the command as that user, or start an agent of your own"


@pytest.mark.parametrize(
    ("place", "words", "err"),
    [
        (
            "XDG_RUNTIME_DIR=DIR/nowhere",
            "get pods",
            f"no agent runs: there is no runtime directory DIR/nowhere: {ABSENT}",
        ),
        (
            "XDG_RUNTIME_DIR=DIR/nowhere",
            "logs web -f",
            f"no agent runs: there is no runtime directory DIR/nowhere: {ABSENT}",
        ),
        (
            "XDG_RUNTIME_DIR=DIR/web.yaml",
            "get pods",
            "DIR/web.yaml/rootlet/rootlet.sock is no path of a socket: a part of it is not a directory",
        ),
        (
            "XDG_RUNTIME_DIR=/root",
            "get pods",
            "the agent at /root/rootlet/rootlet.sock is not yours: /root belongs to root; " + OF_ROOT,
        ),
        (
            "XDG_RUNTIME_DIR=DIR",
            "get pods",
            "no agent answers on DIR/rootlet/rootlet.sock: start one with 'rootlet run', "
            "or choose one that runs with --instance: shop",
        ),
        (
            "XDG_RUNTIME_DIR=/etc/passwd",
            "run",
            "the agent cannot start: /etc/passwd/rootlet: a part of the path is not a directory",
        ),
        (
            "XDG_CONFIG_HOME=DIR/closed",
            "run",
            "the agent cannot start: DIR/closed/containers/containers.conf: this user may not read or change it",
        ),
        (
            "XDG_STATE_HOME=DIR/closed",
            "run",
            "the agent cannot start: DIR/closed/rootlet/rootlet: this user may not read or change it",
        ),
        (
            "XDG_STATE_HOME=DIR/web.yaml",
            "run",
            "the agent cannot start: DIR/web.yaml/rootlet/rootlet: a part of the path is not a directory",
        ),
    ],
)
def test_places(directory: Path, place: str, words: str, err: str) -> None:
    with contextlib.ExitStack() as stack:
        Path("rootlet").mkdir()
        stack.enter_context(another_program("rootlet/shop.sock"))
        done = subprocess.run(
            ["env", place.replace("=DIR", f"={directory}"), "rootlet", *words.split()],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    *logged, said = done.stderr.replace(str(directory), "DIR").splitlines()
    assert said == f"rootlet: {err}"
    assert [line for line in logged if not LOGGED.match(line)] == []


LASTING: Final = (
    *("get pods -w", "get events --watch-only", "events -w", "logs web -f", "top pods -w", "wait --for=delete pod/web"),
    *("attach web", "exec web -- sleep 60", "exec -i web -- cat", "apply -f -", "port-forward web :80"),
)
"""Commands that go on until somebody ends them; standard input stays open."""
OURS: Final = re.compile(rb'File "[^"]*/(?:supervisor|workers)/')
"""Our files in a traceback: before the first of them is imported Python itself answers Ctrl-C with one."""


def _told_by_its_end(process: subprocess.Popen[bytes], signum: signal.Signals) -> bytes:
    """Errors of a command that was signalled. Python's own start may swallow a signal, whose exception is lost in a
    destructor or in the callback of a weak reference: then somebody presses Ctrl-C once more."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.communicate(timeout=10)[1]
    process.send_signal(signum)
    return process.communicate(timeout=30)[1]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("pause_s", [0.1, 0.8])
def test_a_signal_anywhere_ends_it_without_a_traceback(ready: Agent, signum: signal.Signals, pause_s: float) -> None:
    """Python itself begins, modules are imported, the agent is asked, it answers. Ctrl-C is how a forwarding that has
    begun ends.

    Signals are as a shell leaves them to a command in the foreground: whoever runs the tests may ignore some."""
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    with contextlib.ExitStack() as stack:
        begun = {}
        for line in LASTING:
            command = ["env", "--default-signal", *ready.command(*line.split())]
            begun[line] = stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=null, stderr=pipe))
        with contextlib.suppress(subprocess.TimeoutExpired):
            begun[LASTING[0]].wait(pause_s)
        for process in begun.values():
            process.send_signal(signum)
        told = {line: _told_by_its_end(process, signum) for line, process in begun.items()}
    assert {line: err for line, err in told.items() if OURS.search(err)} == {}
    assert {line for line, process in begun.items() if process.returncode == 0} <= {"port-forward web :80"}
