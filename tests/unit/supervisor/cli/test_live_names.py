"""Names with which each command is completed."""

from __future__ import annotations

import importlib

import click
import pytest

from supervisor.cli import live_names

POD, TYPED, WORKER, CONTAINER = "a pod", "pod/NAME", "a worker", "a container"
_MEANT = {"_pods": POD, "_typed_pods": TYPED, "_workers": WORKER, "_containers": CONTAINER}


def completes(command: click.Command, param: str) -> str:
    """Names with which a parameter of that command is completed; empty for nothing."""
    found = next(each for each in command.params if each.name == param)
    complete = found.__dict__.get("shell_complete")
    return _MEANT[complete.args[0].__name__] if complete is not None else ""


@pytest.mark.parametrize(
    ("module", "path", "param", "meant"),
    [
        ("changing.restart", "restart pod", "names", POD),
        ("changing.restart", "restart container", "pod", POD),
        ("changing.restart", "restart container", "containers", CONTAINER),
        ("changing.pause", "pause pod", "names", POD),
        ("changing.resume", "resume pod", "names", POD),
        ("changing.rollout", "rollout restart", "words", TYPED),
        ("operating.workers", "workers restart", "names", WORKER),
        ("reading.top", "top pods", "names", POD),
        ("reading.wait", "wait", "words", TYPED),
    ],
)
def test_a_command_is_completed_with_what_it_takes(module: str, path: str, param: str, meant: str) -> None:
    found = importlib.import_module(f"supervisor.cli.commands.{module}")
    name, *below = path.split()
    command = live_names.complete_live(getattr(found, name))
    for each in below:
        assert isinstance(command, click.Group)
        command = command.commands[each]
    assert completes(command, param) == meant


def words(module: str, path: str, param: str, incomplete: str) -> list[str]:
    """Words with which what is typed of a parameter is completed, without an agent."""
    found = importlib.import_module(f"supervisor.cli.commands.{module}")
    name, *below = path.split()
    command = live_names.complete_live(getattr(found, name))
    for each in below:
        assert isinstance(command, click.Group)
        command = command.commands[each]
    known = next(each for each in command.params if each.name == param)
    return [item.value for item in known.shell_complete(click.Context(command), incomplete)]


@pytest.mark.parametrize(
    ("module", "path", "param", "incomplete", "there"),
    [
        ("reading.get", "get", "output_text", "", {"json", "yaml", "wide", "name", "jsonpath=", "custom-columns="}),
        ("reading.get", "get", "output_text", "js", {"json", "jsonpath=", "jsonpath-as-json="}),
        ("changing.apply", "apply", "output", "", {"json", "yaml", "name"}),
        ("operating.status", "status", "output", "y", {"yaml"}),
        ("about.docs", "docs", "page", "howto/b", {"howto/boot"}),
        ("reading.explain", "explain", "path", "po", {"pod"}),
        ("reading.explain", "explain", "path", "pods.spec.h", {"pods.spec.hostname", "pods.spec.hostAliases"}),
        ("reading.explain", "explain", "path", "pod.spec.containers.image", {"pod.spec.containers.imagePullPolicy"}),
    ],
)
def test_words_that_need_no_agent(module: str, path: str, param: str, incomplete: str, there: set[str]) -> None:
    found = words(module, path, param, incomplete)
    assert there <= set(found)
    assert all(word.startswith(incomplete) and word for word in found)


def test_a_field_that_is_not_there_is_completed_with_nothing() -> None:
    assert words("reading.explain", "explain", "path", "pod.spec.nothing.") == []
