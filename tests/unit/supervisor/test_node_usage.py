"""The upper bound of what pods ask for together."""

from __future__ import annotations

from supervisor.node_usage import NodeUsage

CAPACITY = {"cpu": 2000}


def test_what_is_known_of_a_pod_is_replaced_and_dropped() -> None:
    usage = NodeUsage()
    usage.put("a", {"cpu": 1500})
    assert not usage.surely_fits("b", {"cpu": 501}, CAPACITY)
    assert usage.surely_fits("b", {"cpu": 500}, CAPACITY)
    assert usage.surely_fits("a", {"cpu": 2000}, CAPACITY), "its own does not stand in its way"
    usage.put("a", {"cpu": 100})
    assert usage.surely_fits("b", {"cpu": 1900}, CAPACITY)
    usage.drop("a")
    usage.drop("a")
    assert usage.surely_fits("b", {"cpu": 2000}, CAPACITY)


def test_what_asks_for_nothing_fits_and_what_nobody_has_does_not() -> None:
    usage = NodeUsage()
    assert usage.surely_fits("a", {}, {})
    assert not usage.surely_fits("a", {"hugepages-2Mi": 1}, CAPACITY)
