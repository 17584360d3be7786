"""Quiet pods: nothing has happened to them for so long."""

from __future__ import annotations

from supervisor.pods.quiet import QuietPods

AFTER_S = 10.0


def test_a_pod_is_quiet_when_nothing_has_happened_to_it_for_so_long() -> None:
    pods = QuietPods()
    pods.stir("a")
    assert not pods.is_quiet("a")
    assert pods.tick(100.0, AFTER_S) == set()
    assert pods.tick(109.9, AFTER_S) == set()
    assert not pods.is_quiet("a")
    assert pods.tick(110.0, AFTER_S) == {"a"}
    assert pods.is_quiet("a")
    assert pods.tick(200.0, AFTER_S) == set(), "each is named once"


def test_what_happens_meanwhile_puts_it_off() -> None:
    pods = QuietPods()
    pods.stir("a")
    pods.stir("b")
    pods.tick(100.0, AFTER_S)
    pods.stir("a")
    pods.tick(105.0, AFTER_S)
    assert pods.tick(110.0, AFTER_S) == {"b"}
    assert not pods.is_quiet("a")
    assert pods.tick(115.0, AFTER_S) == {"a"}


def test_a_quiet_pod_that_is_stirred_is_so_no_more() -> None:
    pods = QuietPods()
    pods.stir("a")
    pods.tick(100.0, AFTER_S)
    pods.tick(110.0, AFTER_S)
    pods.stir("a")
    assert not pods.is_quiet("a")
    pods.tick(111.0, AFTER_S)
    assert pods.tick(121.0, AFTER_S) == {"a"}


def test_a_pod_that_is_gone_is_named_no_more() -> None:
    pods = QuietPods()
    pods.stir("a")
    pods.stir("b")
    pods.tick(100.0, AFTER_S)
    pods.stir("b")
    pods.forget("a")
    pods.forget("b")
    assert pods.tick(200.0, AFTER_S) == set()
