"""Order of ends: who waits for whom, beside upstream's table."""

from __future__ import annotations

import pytest

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import PodSpec
from tests.fakes.clock import simulate
from tests.support.pods import container, pod
from workers.kuberuntime.termination_order import prerequisites, termination_order


def sidecar(name: str) -> Container:
    return container(name, restart_policy="Always")


SIDECARS = (sidecar("one"), container("init"), sidecar("two"), sidecar("three"))


def test_a_sidecar_waits_for_every_regular_container_and_the_sidecar_after_it() -> None:
    spec: PodSpec = pod("a", "b", init_containers=SIDECARS).spec
    assert prerequisites(spec) == {"one": ("a", "b", "two"), "two": ("a", "b", "three"), "three": ("a", "b")}


def test_without_sidecars_nobody_waits() -> None:
    assert prerequisites(pod("a", "b", init_containers=(container("init"),)).spec) == {}


@pytest.mark.parametrize(
    ("running", "waiting"),
    [
        (("a", "one", "two", "three"), {"one", "two", "three"}),
        (("one", "two", "three"), {"one", "two"}),
        (("one", "three"), set()),
        (("b", "one", "init"), {"one"}),
        (("one", "init"), set()),
        ((), set()),
    ],
)
def test_nobody_waits_for_what_does_not_run(running: tuple[str, ...], waiting: set[str]) -> None:
    async def main() -> set[str]:
        order = termination_order(pod("a", "b", init_containers=SIDECARS), running)
        return {name for name in running if order.must_wait(name)}

    assert simulate(main) == waiting


def test_the_next_one_goes_when_the_one_before_is_down() -> None:
    async def main() -> list[bool]:
        order = termination_order(pod("a", init_containers=(sidecar("one"), sidecar("two"))), ("a", "one", "two"))
        told = [order.must_wait("two"), await order.wait_turn("two", 1.0)]
        order.terminated("a")
        told += [order.must_wait("two"), await order.wait_turn("two", 0.0), order.must_wait("one")]
        order.terminated("two")
        order.terminated("nobody knows it")
        return [*told, order.must_wait("one")]

    assert simulate(main) == [True, False, False, True, True, False]


def test_without_a_manifest_nobody_waits() -> None:
    async def main() -> bool:
        return termination_order(None, ("a", "one")).must_wait("one")

    assert simulate(main) is False
