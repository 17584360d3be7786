"""`rootlet stop --pods` when no agent runs: what it asks and does. Podman is a program that notes its arguments."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from supervisor.state import instance_lock
from supervisor.state.label_key_file import NAME, load_or_make
from tests.support.api_server import api_server
from tests.support.cli import Outcome, run_here
from workers.kubecontainer import labels
from workers.kubecontainer.label_signatures import Ownership

KEY_MADE_AT = 1_700_000_000.0
LATER, BEFORE = "2026-01-01T00:00:00.5Z", "2020-01-01T00:00:00Z"
PODMAN = """#!/bin/sh
[ "$2" = ps ] && exec cat {directory}/pods.json
echo "$@" >> {directory}/done
case "$*" in *stuck*) echo "no such thing" >&2; exit 125;; esac
"""


class Host:
    """A configuration, and pods that Podman shows."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.socket = directory / "run" / "rootlet.sock"
        (directory / "run").mkdir(mode=0o700)
        program = directory / "podman"
        program.write_text(PODMAN.format(directory=directory))
        program.chmod(0o700)
        self.config = directory / "rootlet.yaml"
        settings = {
            "apiVersion": "rootlet.dev/v1alpha1",
            "kind": "RootletConfiguration",
            "instanceName": "one",
            "adminSocket": str(self.socket),
            "stateDir": str(directory / "state"),
            "podman": {"path": str(program)},
        }
        self.config.write_text(json.dumps(settings))
        (directory / "state").mkdir(mode=0o700)
        self.ownership = Ownership(instance="one", key=load_or_make(directory / "state" / NAME, KEY_MADE_AT))

    def pod(self, name: str, grace_s: int, *, signed: bool = True, created: str = LATER) -> dict[str, Any]:
        own = labels.SandboxLabels(
            instance="one", pod_name=name, pod_namespace="default", pod_uid=f"uid-{name}", grace_period_s=grace_s
        )
        found = labels.write(own)
        given = self.ownership.signed_sandbox(name, found) if signed else found
        return {"Id": f"id-{name}", "Name": name, "Created": created, "Labels": given, "Status": "Running"}

    def show(self, *pods: dict[str, Any]) -> None:
        (self.directory / "pods.json").write_text(json.dumps(pods))

    def done(self) -> list[str]:
        path = self.directory / "done"
        return path.read_text().splitlines() if path.exists() else []

    def stop(self, *arguments: str, stdin: bytes = b"") -> Outcome:
        return run_here("stop", "--pods", "--config", str(self.config), *arguments, stdin=stdin)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(tmp_path)
    monkeypatch.setenv("ROOTLET_SOCKET", str(made.socket))
    return made


def test_it_asks_and_then_stops_each_within_its_own_grace_period(host: Host) -> None:
    host.show(host.pod("web", 7), host.pod("db", 900))
    refused = host.stop(stdin=b"n\n")
    assert (refused.code, host.done()) == (1, [])
    listed = "these pods of it are there:\n  default/db\n  default/web\n"
    assert refused.out == f"the agent of the instance one does not run; {listed}"
    assert refused.err.endswith("error: nothing was stopped\n")
    done = host.stop("--yes", "--timeout=1m")
    assert (done.code, done.err) == (0, "")
    assert sorted(done.out.splitlines()[3:]) == [f"pod default/{name} stopped and removed" for name in ("db", "web")]
    assert sorted(host.done()) == [
        "pod rm --force --ignore --time 0 id-db",
        "pod rm --force --ignore --time 0 id-web",
        "pod stop --ignore --time 60 id-db",
        "pod stop --ignore --time 7 id-web",
    ]


def test_a_paused_pod_goes_on_to_be_stopped(host: Host) -> None:
    host.show({**host.pod("still", 7), "Status": "Paused"})
    assert host.stop("--yes").code == 0
    assert host.done()[:2] == ["pod unpause id-still", "pod stop --ignore --time 7 id-still"]


def test_what_is_not_signed_is_left_alone_but_for_what_is_older_than_the_key(host: Host) -> None:
    host.show(host.pod("copy", 1, signed=False), host.pod("old", 1, signed=False, created=BEFORE))
    found = host.stop("--yes")
    assert found.code == 0
    assert "warning: pod default/copy is left alone: its labels are not signed" in found.err
    assert host.done() == ["pod stop --ignore --time 1 id-old", "pod rm --force --ignore --time 0 id-old"]


def test_without_a_key_labels_are_enough(host: Host) -> None:
    (host.directory / "state" / NAME).unlink()
    host.show(host.pod("web", 1, signed=False))
    assert host.stop("--yes").out.endswith("pod default/web stopped and removed\n")


def test_the_others_go_when_one_stays(host: Host) -> None:
    host.show(host.pod("stuck", 1), host.pod("web", 1))
    found = host.stop("--yes")
    assert found.code == 1
    assert "pod default/web stopped and removed\n" in found.out
    assert found.err.endswith("default/stuck: rootlet: " + f"{host.directory}/podman pod stop: no such thing\n")


def test_nothing_is_there(host: Host) -> None:
    host.show()
    assert host.stop().out == "the agent of the instance one does not run, and there are no pods of it\n"


def test_an_agent_that_holds_the_lock_has_its_pods(host: Host) -> None:
    host.show(host.pod("web", 1))
    lock = instance_lock.acquire(host.socket.with_suffix(".lock"))
    try:
        found = host.stop("--yes")
    finally:
        os.close(lock)
    assert (found.code, host.done()) == (1, [])
    assert f"an agent of this instance runs already (pid {os.getpid()}, lock " in found.err


def test_the_configuration_is_of_another_agent(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOTLET_SOCKET", str(host.directory / "other.sock"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(host.directory))
    (host.directory / "rootlet").mkdir()
    host.config.rename(host.directory / "rootlet" / "rootlet.yaml")
    found = run_here("stop", "--pods", "--yes")
    assert (found.code, host.done()) == (1, [])
    assert "to stop its pods without it, name its configuration file with --config" in found.err


def test_without_the_flag_nothing_is_looked_for(host: Host) -> None:
    found = run_here("stop", "--config", str(host.config))
    assert (found.code, found.out) == (1, "")
    assert found.err.startswith(f"rootlet: no agent answers on {host.socket}")


@pytest.mark.parametrize(
    "command", [("stop",), ("stop", "--pods", "--yes"), ("config", "view"), ("uninstall", "--yes")]
)
async def test_a_configuration_that_is_named_names_the_agent(
    host: Host, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """The default instance answers, and is not asked."""
    monkeypatch.delenv("ROOTLET_SOCKET")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(host.directory))
    monkeypatch.setenv("HOME", str(host.directory))
    host.show()
    (host.directory / "rootlet").mkdir()
    async with api_server(host.directory / "rootlet") as default:
        default.ready()
        outcome = await asyncio.to_thread(run_here, *command, "--config", str(host.config))
        assert default.requests == []
    if "--yes" in command:
        assert outcome.code == 0, outcome.err
        assert "instance one" in outcome.out or "removed" in outcome.out
    else:
        assert outcome.code == 1
        assert f"no agent answers on {host.socket}" in outcome.err


@pytest.mark.parametrize("command", [("stop",), ("config", "view"), ("uninstall", "--yes"), ("leave",)])
def test_a_configuration_and_another_agent_are_not_named_together(host: Host, command: tuple[str, ...]) -> None:
    host.config.write_text(json.dumps(json.loads(host.config.read_text()) | {"cluster": {"kubeconfig": "/no/file"}}))
    outcome = run_here("--socket", str(host.directory / "other.sock"), *command, "--config", str(host.config))
    assert outcome.code == 1
    assert f"of the instance one on {host.socket}, and another agent was named" in outcome.err
    assert host.done() == []
