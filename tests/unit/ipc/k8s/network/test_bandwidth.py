"""Bandwidth annotations (pkg/util/bandwidth/utils.go)."""

from __future__ import annotations

import pytest

from ipc.k8s.network.bandwidth import EGRESS, INGRESS, UNLIMITED, Bandwidth, bandwidth_problem, pod_bandwidth


@pytest.mark.parametrize(
    ("annotations", "wanted"),
    [
        ({}, UNLIMITED),
        ({INGRESS: "10M"}, Bandwidth(ingress=10_000_000)),
        ({EGRESS: "1Ki"}, Bandwidth(egress=1024)),
        ({INGRESS: "1k", EGRESS: "1P"}, Bandwidth(ingress=1000, egress=10**15)),
        ({INGRESS: "fast", EGRESS: "1"}, UNLIMITED),
    ],
)
def test_what_the_annotations_say(annotations: dict[str, str], wanted: Bandwidth) -> None:
    assert pod_bandwidth(annotations) == wanted


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1M", None),
        ("999", "resource is unreasonably small (< 1kbit)"),
        ("-1M", "resource is unreasonably small (< 1kbit)"),
        ("2P", "resource is unreasonably large (> 1Pbit)"),
        ("fast", "must be a number with an optional suffix such as m, k, M, Ki, Mi or e3"),
    ],
)
def test_what_is_wrong(text: str, problem: str | None) -> None:
    assert bandwidth_problem(text) == problem
