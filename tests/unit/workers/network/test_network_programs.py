from __future__ import annotations

import pytest

from ipc.k8s.network.network_programs import wanted_program
from tests.fakes.clock import HandClock
from workers.kubecontainer.runtime import ErrorKind, NetworkPrograms, RuntimeCallError
from workers.network.network_programs import ASK_PERIOD_S, NetworkCheck, find_program, network_problem

BOTH = frozenset({"slirp4netns", "pasta"})


@pytest.mark.parametrize(
    ("mode", "version", "default", "wanted"),
    [
        ("", "4.3.1", "", "slirp4netns"),
        ("", "5.4.2", "", "pasta"),
        ("", "10.0.0", "", "pasta"),
        ("", "5.4.2", "slirp4netns", "slirp4netns"),
        ("", "", "", "slirp4netns"),
        ("bridge", "5.4.2", "", "pasta"),
        ("slirp4netns", "5.4.2", "pasta", "slirp4netns"),
        ("pasta", "4.9.0", "", "pasta"),
    ],
)
def test_the_program_by_configuration_and_podman(mode: str, version: str, default: str, wanted: str) -> None:
    assert wanted_program(mode, version, default) == wanted
    assert network_problem(mode, version, NetworkPrograms(default=default, found=BOTH)) == ""
    problem = network_problem(mode, version, NetworkPrograms(default=default, found=BOTH - {wanted}))
    assert problem == (
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
        f"message:Podman finds no {wanted}, which makes the network of a pod"
    )


@pytest.mark.parametrize("version", ["6.0.0", "6.1.1", "10.0.0"])
@pytest.mark.parametrize(("mode", "default"), [("slirp4netns", "pasta"), ("", "slirp4netns")])
async def test_podman_6_has_no_slirp4netns(mode: str, default: str, version: str) -> None:
    """Also where it is installed: a pod would wait for ever with Podman's refusal."""
    problem = network_problem(mode, version, NetworkPrograms(default=default, found=BOTH))
    assert problem.endswith(
        f"message:Podman {version} has no slirp4netns any more: set podNetwork.mode to pasta, or leave it out"
    )


async def test_a_program_that_podman_does_not_know_is_no_network_wherever_it_is() -> None:
    host = Asked(mode="slirp4netns")
    host.there = {"slirp4netns"}
    assert "no slirp4netns any more" in await host.check.problem("6.1.1")
    assert await host.check.problem("5.8.6") == ""


class Asked:
    """A Podman that says what it was told to, and a host that has what it was given."""

    def __init__(self, mode: str = "") -> None:
        self.clock = HandClock()
        self.there: set[str] = set()
        self.answer: NetworkPrograms | None = NetworkPrograms()
        self.times = 0
        self.check = NetworkCheck(mode, self.clock, self.ask, lambda name: name if name in self.there else "")

    async def ask(self) -> NetworkPrograms:
        self.times += 1
        if self.answer is None:
            raise RuntimeCallError(ErrorKind.UNAVAILABLE, "info", "no answer")
        return self.answer

    async def is_ready(self) -> bool:
        return not await self.check.problem("4.3.1")


async def test_podman_is_asked_only_for_what_the_host_does_not_show_and_not_all_the_time() -> None:
    host = Asked()
    host.there = {"slirp4netns"}
    assert (await host.is_ready(), host.times) == (True, 0)
    host.there = {"pasta"}
    assert (await host.is_ready(), host.times) == (False, 1)
    host.answer = NetworkPrograms(found=frozenset({"slirp4netns"}))
    assert (await host.is_ready(), host.times) == (False, 1)
    host.clock.mono += ASK_PERIOD_S
    assert (await host.is_ready(), host.times) == (True, 2)


async def test_a_program_that_comes_is_seen_at_once() -> None:
    host = Asked()
    assert not await host.is_ready()
    host.there = {"slirp4netns"}
    assert await host.is_ready()
    host.there = set()
    assert (await host.is_ready(), host.times) == (False, 2)


async def test_a_podman_that_does_not_answer_is_no_news() -> None:
    host = Asked()
    host.answer = None
    assert await host.is_ready()
    host.answer = NetworkPrograms()
    host.clock.mono += ASK_PERIOD_S
    assert not await host.is_ready()
    host.answer = None
    host.clock.mono += ASK_PERIOD_S
    assert not await host.is_ready()


def test_a_program_of_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_program("sh")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert not find_program("sh")
