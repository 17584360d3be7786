"""Manifests that cannot be used: each is told in an event and in the log, and nothing else happens."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import STAY, container, pod
from tests.support.variants import often

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

TOO_LARGE_BYTES = 2 << 20

BYSTANDERS = ("bystander-0", "bystander-1")


@pytest.fixture(scope="module")
def busy(agent: Agent) -> Agent:
    """Some pods run."""
    agent.run(*map(pod, BYSTANDERS))
    return agent


def until_told(agent: Agent, words: str) -> None:
    """One event of the node and one line of the log say exactly that, and go on with what is wrong."""

    def is_told() -> bool:
        events = [e for e in agent.events("e2e") if e["message"].startswith(words)]
        lines = [line for line in agent.log_text().splitlines() if f"manifest refused: {words}" in line]
        for event in events:
            assert (event["reason"], event["type"], event["involvedObject"]["kind"]) == (
                "FailedValidation",
                "Warning",
                "Node",
            )
            assert event["count"] == 1, "told once, however often it is read"
        return bool(events and lines)

    agent.until(is_told, f"{words!r} is told")


def _text(content: str | bytes) -> Callable[[Path], None]:
    return lambda path: write_atomically(path, content)


def write_atomically(path: Path, content: str | bytes) -> None:
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(content.encode() if isinstance(content, str) else content)
    new.replace(path)


def _unreadable(path: Path) -> None:
    new = path.with_name(f".{path.name}.new")
    new.write_text(json.dumps(pod("unreadable")))
    new.chmod(0)
    new.replace(path)


BROKEN: dict[str, tuple[str, Callable[[Path], None], str]] = {
    # file, how it is made, what is said after its name
    "yaml": ("bad.yaml", _text("apiVersion: v1\nkind: Pod\nmetadata: {name: [\n"), ": document 1: line "),
    "json": ("bad.json", _text('{"apiVersion": "v1",'), ": document 1: line 1"),
    "unknown field": (
        "unknown.yaml",
        _text(json.dumps(pod("unknown", container(imagee="x")))),
        ": document 1: spec.containers[0].imagee: unknown field",
    ),
    "wrong type": (
        "type.yaml",
        _text(json.dumps(pod("type", container(ports=[{"containerPort": "eighty"}])))),
        ": document 1: spec.containers[0].ports[0].containerPort: ",
    ),
    "wrong value": (
        "value.yaml",
        _text(json.dumps(pod("value")) + "\n---\n" + json.dumps(pod("Value"))),
        ": document 2: metadata.name: ",
    ),
    "other kind": ("kind.yaml", _text("apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"), ": document 1: kind: "),
    "2 MiB": ("large.yaml", _text(json.dumps(pod("large")) + "\n#" + "x" * TOO_LARGE_BYTES), ": "),
    "binary garbage": ("binary.yaml", _text(bytes(range(256)) * 64), ": "),
    "no bytes": ("empty.yaml", _text(""), ": has no pod or other object in it"),
    "directory": ("x.yaml", Path.mkdir, ": is a directory, not a regular file"),
    "unreadable": ("unreadable.yaml", _unreadable, ": Permission denied"),
    "FIFO": ("fifo.yaml", os.mkfifo, ": is a FIFO, not a regular file"),
    "dangling link": ("link.yaml", lambda path: path.symlink_to("nowhere.yaml"), ": No such file or directory"),
}


OFTEN = ("yaml", "unknown field", "FIFO")
"""Kinds that are tried in every run: of each place that refuses, one."""


@pytest.mark.parametrize("kind", often([*BROKEN], *OFTEN))
def test_it_is_told_and_changes_nothing(busy: Agent, kind: str) -> None:
    name, make, words = BROKEN[kind]
    before, pods_before = busy.eye.pod_table(), busy.pods().keys()
    path = busy.manifests / name
    make(path)
    until_told(busy, f"{name}{words}")
    # The manifests are still read, and what is good in them counts.
    busy.run(pod("beside"))
    busy.remove("beside")
    busy.until_gone(["beside"])
    extra = {"value"} if kind == "wrong value" else set()
    assert busy.pods().keys() - pods_before == extra
    now = busy.eye.pod_table()
    assert {key: lifecycle for key, lifecycle in now.items() if key[0] not in extra} == before
    path.rmdir() if kind == "directory" else path.unlink()
    busy.until_gone(extra)
    assert {event["involvedObject"]["name"] for event in busy.events() if event["reason"] == "FailedValidation"} == {
        "e2e"
    }


def test_a_file_that_is_skipped_is_told_of_when_it_appears(busy: Agent) -> None:
    busy.write_file("skipped.yaml.txt", "")
    words = "manifests: not read: skipped.yaml.txt (a manifest's name ends in "
    busy.until(lambda: any(event["message"].startswith(words) for event in busy.events()), "it is told")
    (busy.manifests / "skipped.yaml.txt").unlink()


@pytest.mark.slow
def test_the_first_of_two_files_keeps_the_name(busy: Agent) -> None:
    busy.write_file("first.yaml", json.dumps(pod("claimed", container(script=f"echo first; {STAY}"))))
    busy.until_ready(["claimed"])
    before = busy.eye.pod_table()
    # Not by its name: it comes before the other one in the directory.
    busy.write_file("a-second.yaml", json.dumps(pod("claimed", container(script=f"echo second; {STAY}"))))
    until_told(
        busy, "a-second.yaml: document 1: metadata.name: pod default/claimed already comes from file: first.yaml"
    )
    busy.restart()
    busy.until_ready(["claimed", *BYSTANDERS])
    assert busy.eye.pod_table() == before
    (busy.manifests / "first.yaml").unlink()
    busy.until(lambda: busy.cli("logs", "claimed").out == "second\n", "the second file takes over")
    busy.until_ready(["claimed"])
    (busy.manifests / "a-second.yaml").unlink()
    busy.until_gone(["claimed"])
    assert busy.eye.pod_table() == {key: lifecycle for key, lifecycle in before.items() if key[0] != "claimed"}


def test_a_good_document_beside_a_bad_one_runs(busy: Agent) -> None:
    good, bad = json.dumps(pod("good")), json.dumps(pod("mended", container(imagee="x")))
    busy.write_file("both.yaml", f"{bad}\n---\n{good}\n")
    until_told(busy, "both.yaml: document 1: spec.containers[0].imagee: unknown field")
    busy.until_ready(["good"])
    assert "mended" not in busy.pods()
    before = busy.eye.pod_table()
    busy.write_file("both.yaml", f"{json.dumps(pod('mended'))}\n---\n{good}\n")
    busy.until_ready(["good", "mended"])
    assert before.items() <= busy.eye.pod_table().items()
    # Once accepted, a pod stays as it is while its document is bad, or not there as long as the file is bad.
    both = busy.eye.pod_table()
    busy.write_file("both.yaml", f"{bad}\n---\n{{}}\n")
    until_told(busy, "both.yaml: document 2: ")
    busy.run(pod("beside"))
    busy.remove("beside")
    busy.until_gone(["beside"])
    assert busy.eye.pod_table() == both
    (busy.manifests / "both.yaml").unlink()
    busy.until_gone(["good", "mended"])
