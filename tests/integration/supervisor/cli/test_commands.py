"""Changes, and the absence of an agent, against a real API server whose master is played by the test."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.link.messages.api_server import ApplyManifests, DeletePod, Reply, StopAgent
from supervisor.version import VERSION
from tests.support.api_server import (
    Master,
    agent_changed,
    pod_changed,
    waiting_client,
)
from tests.support.cli import ROOT, rootlet, run_here

MANIFEST = b"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: db}\n"


# --- changes ---------------------------------------------------------------------------------------------------


async def test_apply(master: Master, tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_bytes(MANIFEST)
    master.answer = lambda r: Reply(request_id=r.request_id, code=200, results=("pod/web created", "pod/db unchanged"))
    found = await rootlet(master, "apply", "-f", str(file))
    assert (found.code, found.out) == (0, "pod/web created\npod/db unchanged\n")
    assert master.requests == [ApplyManifests(request_id=1, file=str(file), body=MANIFEST)]


async def test_apply_stdin_and_directory(master: Master, tmp_path: Path) -> None:
    master.ready()
    (tmp_path / "pods").mkdir()
    for name in ("b.yaml", "a.json", "README.md"):
        (tmp_path / "pods" / name).write_text(name)
    found = await rootlet(master, "apply", "-f", "-", "-f", str(tmp_path / "pods"), stdin=b"kind: Pod")
    assert found.code == 0
    bodies = [r.body for r in master.requests if isinstance(r, ApplyManifests)]
    assert bodies == [b"kind: Pod", b"a.json", b"b.yaml"]


async def test_apply_what_is_wrong(master: Master, tmp_path: Path) -> None:
    message = "web.yaml: document 1: spec.containers[0].image: required"
    master.answer = lambda r: Reply(request_id=r.request_id, code=422, reason="Invalid", message=message)
    found = await rootlet(master, "apply", "-f", "-", stdin=b"kind: Pod")
    assert (found.code, found.out, found.err) == (1, "", f"error: {message}\n")
    missing = await rootlet(master, "apply", "-f", str(tmp_path / "none.yaml"))
    assert (missing.code, missing.err) == (1, f"rootlet: {tmp_path}/none.yaml: No such file or directory\n")
    large = await rootlet(master, "apply", "-f", "-", stdin=b"#" * (1024 * 1024 + 1))
    assert (large.code, large.err) == (1, "rootlet: -: larger than 1048576 bytes\n")


async def test_delete_waits_for_the_end(master: Master) -> None:
    master.ready(pod_changed(1, "web"))
    async with waiting_client(rootlet(master, "delete", "pod", "web", "--grace-period=1"), 3) as deleting:
        assert master.requests == [DeletePod(request_id=1, namespace="default", name="web", grace_period_s=1)]
        master.gone(2, "web")
    found = await deleting
    assert (found.code, found.out) == (0, 'pod "web" deleted from default namespace\n')


async def test_delete_what_a_manifest_names(master: Master, tmp_path: Path) -> None:
    master.ready(pod_changed(1, "web"))
    file = tmp_path / "web.yaml"
    file.write_bytes(MANIFEST)

    def answer(request: Any) -> Reply:
        if request.name == "web":
            return Reply(request_id=request.request_id, code=200)
        return Reply(request_id=request.request_id, code=404, reason="NotFound", message='pods "db" not found')

    master.answer = answer
    found = await rootlet(master, "delete", "-f", str(file), "--no-wait")
    assert (found.code, found.out) == (1, 'pod "web" deleted from default namespace\n')
    assert found.err == 'Error from server (NotFound): pods "db" not found\n'
    found = await rootlet(master, "delete", "-f", str(file), "--no-wait", "--ignore-not-found")
    assert found.code == 0


@pytest.mark.parametrize(
    "body", [b"\xff\xfe", b"kind: [", b"kind: Service", b"kind: Pod", b"- 1", b"kind: List\nitems: [3]"]
)
async def test_delete_with_a_broken_manifest(master: Master, body: bytes) -> None:
    master.ready()
    found = await rootlet(master, "delete", "-f", "-", stdin=body)
    assert found.code == 1
    assert found.err.startswith("rootlet: -: ")
    assert "Traceback" not in found.err
    assert not master.requests


async def test_stop_returns_when_the_agent_is_gone(master: Master) -> None:
    agent = await asyncio.create_subprocess_exec("sleep", "60")
    master.ready()
    master.feed(agent_changed(pid=agent.pid))

    def answer(request: Any) -> Reply:
        agent.terminate()
        return Reply(request_id=request.request_id, code=202, results=("stopping",))

    master.answer = answer
    stopping = asyncio.create_task(rootlet(master, "stop", "--pods"))
    await agent.wait()
    found = await stopping
    assert (found.code, found.out) == (0, "agent stopped\n")
    assert master.requests == [StopAgent(request_id=1, pods=True)]


async def test_version(master: Master) -> None:
    master.ready()
    found = await rootlet(master, "version")
    assert "Agent Version: v0.1.0" in found.out
    assert "Podman API Version: 4.3.1 (healthy)" in found.out
    document = await rootlet(master, "version", "-o", "json")
    assert json.loads(document.out)["agent"]["instance"] == "test"
    assert found.err == document.err == ""


async def test_an_agent_of_another_version_is_warned_of(master: Master) -> None:
    master.ready()
    master.feed(msgspec.structs.replace(agent_changed(), version="0.0.9"))
    words = f"this command is v{VERSION}: restart the agent to have both the same"
    found = await rootlet(master, "version", "-o", "json")
    assert json.loads(found.out)["agent"]["gitVersion"] == "v0.0.9"
    assert (found.code, found.err) == (0, f"warning: the agent is v0.0.9, {words}\n")
    assert words in (await rootlet(master, "status")).out
    assert (await rootlet(master, "version", "--client")).err == ""


# --- the agent's absence, and which one is meant ---------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "pods"),
        ("get", "workers"),
        ("get", "pods", "-w"),
        ("describe", "pod", "web"),
        ("logs", "web"),
        ("wait", "--for=delete", "pod/web"),
        ("delete", "pod", "web"),
        ("stop",),
    ],
)
def test_no_agent_is_one_clear_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    socket = tmp_path / "none.sock"
    found = run_here("--socket", str(socket), *arguments)
    assert (found.code, found.out) == (1, "")
    assert found.err == f"rootlet: no agent answers on {socket}: start one with 'rootlet run'\n"


def test_a_file_that_is_no_socket(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    path.write_text("")
    assert run_here("get", "pods", "--socket", str(path)).err.startswith(f"rootlet: {path} is not a socket but a file")


def test_which_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def asked(*arguments: str) -> str:
        return run_here(*arguments).err.split(" answers on ")[1].split(": ")[0]

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("ROOTLET_SOCKET", raising=False)
    monkeypatch.delenv("ROOTLET_INSTANCE", raising=False)
    default = str(tmp_path / "rootlet")
    assert asked("get", "pods") == f"{default}/rootlet.sock"
    assert asked("get", "pods", "--instance", "two") == f"{default}/two.sock"
    assert asked("--instance", "two", "get", "pods") == f"{default}/two.sock"
    monkeypatch.setenv("ROOTLET_INSTANCE", "three")
    assert asked("get", "pods") == f"{default}/three.sock"
    assert asked("get", "pods", "--instance", "two") == f"{default}/two.sock"
    monkeypatch.setenv("ROOTLET_SOCKET", "/elsewhere.sock")
    assert asked("get", "pods") == "/elsewhere.sock"
    assert asked("--instance", "two", "get", "pods") == f"{default}/two.sock"
    assert run_here("--instance", "../x", "get", "pods").code == 1


def test_config_check(tmp_path: Path) -> None:
    head = "apiVersion: rootlet.dev/v1alpha1\nkind: RootletConfiguration\n"
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(head)
    bad.write_text(f"{head}workers: {{count: many}}\n")
    found = run_here("config", "check", str(good))
    assert (found.code, found.out) == (0, f"{good}: valid\n")
    for command in (("config", "check", str(bad)), ("run", "--config", str(bad))):
        found = run_here(*command)
        assert (found.code, found.out) == (2, "")
        assert found.err.startswith(f"rootlet: {bad}: workers.count: ")
    assert run_here("run", "--config", str(tmp_path / "none.yaml")).code == 2


def test_only_run_imports_the_agent() -> None:
    program = (
        "import sys\n"
        "from supervisor.__main__ import load_worker_main\n"
        "from supervisor.cli.main import run_cli\n"
        "code = run_cli(['--socket', '/nowhere', 'get', 'pods'], load_worker_main)\n"
        "heavy = {'workers', 'podman', 'aiohttp', 'uvloop', 'supervisor.master', 'psutil', 'yaml'} & set(sys.modules)\n"
        "print(code, sorted(heavy))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "1 []\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("wait", "--for=delete"), "name the objects"),
        (("wait", "--for=delete", "--all", "pod/web"), "name the objects"),
        (("delete",), "You must provide one or more resources by argument or filename"),
        (("delete", "--all"), "You must provide one or more resources by argument or filename"),
        (("delete", "pod,cm"), "resource(s) were provided, but no name was specified"),
        (("delete", "pod", "web", "--all"), "say which by name"),
        (("delete", "pod/web", "--all"), "say which by name"),
        (("delete", "-f", "web.yaml", "pod"), "say which by name"),
        (("delete", "pod/web", "db"), "'db': name each object as TYPE/NAME"),
        (("apply",), "must specify one of -f and -k"),
        (("logs", "web", "--since", "yesterday"), "invalid duration"),
        (("logs", "web", "app", "-c", "app"), "only one of -c or an inline [CONTAINER] arg"),
        (("logs", "web", "app", "--all-containers"), "should not be specified with container name app"),
        (("frobnicate",), 'unknown command "frobnicate" for "rootlet"'),
        (("top", "pods", "--sort-by", "name"), "must be one of cpu, memory"),
        (("top", "deployments"), 'unknown command "deployments" for "rootlet top"'),
        (("stats", "service/web"), "is not a pod"),
    ],
)
def test_wrong_command_lines_exit_1(arguments: tuple[str, ...], words: str) -> None:
    found = run_here("--socket", "/nowhere", *arguments)
    assert found.code == 1
    assert words in found.err


@pytest.mark.parametrize(
    ("meant", "names"), [("pods", ("po", "pod", "pods")), ("node", ("no", "node", "nodes"))], ids=["pods", "node"]
)
def test_every_name_of_a_kind_is_a_command_of_top(meant: str, names: tuple[str, ...]) -> None:
    expected = run_here("--socket", "/nowhere", "top", meant)
    assert "/nowhere" in expected.err
    assert [run_here("--socket", "/nowhere", "top", name) for name in names] == [expected] * len(names)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("get",), "You must specify the type of resource to get."),
        (("get", "services"), 'error: the server doesn\'t have a resource type "services"'),
        (("get", "pods", "-o", "xml"), 'error: unable to match a printer suitable for the output format "xml"'),
        (("get", "pods", "-o", "go-template={{.}}"), "error: go-template is not supported"),
        (("get", "pods", "-o", "jsonpath={.items[}"), "error: error parsing jsonpath {.items[}, unterminated array"),
        (("get", "pods", "-A", "web"), "error: a resource cannot be retrieved by name across all namespaces"),
        (("get", "pods", "web", "-l", "a=b"), "error: name cannot be provided when a selector is specified"),
        (("get", "pod/web", "db"), "error: there is no need to specify a resource type as a separate argument"),
        (("describe",), "You must specify the type of resource to describe."),
        (("describe", "service/web"), 'error: the server doesn\'t have a resource type "service"'),
        (("describe", "service", "x"), 'error: the server doesn\'t have a resource type "service"'),
        (("events", "--types=Odd"), "error: valid --types are Normal or Warning"),
        (("events", "--for=web"), "error: --for must be in resource/name form"),
        (("logs", "web", "--since", "-1s"), "error: --since must be greater than 0\n"),
        (("logs", "web", "--since=-1h30m"), "error: --since must be greater than 0\n"),
        (("logs", "web", "--since=-1"), "error: --since must be greater than 0\n"),
        (("logs", "web", "--tail", "-2"), "error: --tail must be greater than or equal to -1\n"),
        (("logs", "web", "--since=1s", "--since-time=2026-01-01T00:00:00Z"), "error: at most one of `sinceTime` or"),
        (("get", "pod/web", "cm/a", "-w"), "error: you may only specify a single resource type"),
    ],
)
def test_wrong_requests_are_said_as_kubectl_says_them(arguments: tuple[str, ...], words: str) -> None:
    found = run_here("--socket", "/nowhere", *arguments)
    assert found.code == 1
    assert found.err.startswith(words)


def test_help_names_every_command() -> None:
    found = run_here("--help")
    assert found.code == 0
    for name in ("run", "get", "describe", "logs", "wait", "apply", "delete", "stop", "version", "config", "load-test"):
        assert f"  {name} " in found.out
