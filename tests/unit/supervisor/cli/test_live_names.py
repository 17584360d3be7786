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
