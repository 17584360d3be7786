"""The table of metrics: exact, current on its page, and complete against what a real kubelet serves."""

import json
import re
from collections import Counter
from typing import Any

import pytest

from ipc.link.messages.sync_error import SyncError
from ipc.link.metrics import kubelet, rootlet
from ipc.link.metrics.layout import combinations
from ipc.link.metrics.model import Metric, MetricType
from ipc.link.metrics.reasons import CANCELLED, OTHER, START_ERRORS, SYNC_ERRORS
from ipc.link.metrics.table import LAYOUT
from ipc.link.wire.boot import Role
from tests.docs.reference.metrics import every_metric
from tests.docs.reference.not_served import REASONS, speaks_for
from tests.kubelet_tables.runner import SHARED

RECORDED = SHARED / "kubelet_metrics.json"
"""Metrics that a kubelet 1.36 serves; not part of the repository."""
NOT_SERVED = tuple(name for _, names in REASONS for name in names)


def test_names_are_prometheus_and_unique_on_each_path() -> None:
    assert [metric.name for metric in every_metric() if not re.fullmatch("[a-z_][a-z0-9_]*", metric.name)] == []
    names = Counter((metric.endpoint, metric.name) for metric in every_metric())
    assert [name for name, count in names.items() if count > 1] == []


def test_what_is_ours_is_named_so() -> None:
    assert [metric.name for metric in rootlet.METRICS if not metric.name.startswith("rootlet_")] == []
    assert [metric.name for metric in kubelet.METRICS if metric.name.startswith("rootlet_")] == []


@pytest.mark.parametrize("metric", every_metric(), ids=lambda metric: f"{metric.endpoint}:{metric.name}")
def test_a_metric_is_declared_consistently(metric: Metric) -> None:
    assert (metric.type is MetricType.HISTOGRAM) == bool(metric.buckets)
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert not (metric.labels and metric.label_names)
    assert not metric.help.endswith(".")
    for labels in metric.labels:
        assert len(set(labels.rows)) == len(labels.rows)
        assert {len(row) for row in labels.rows} == {len(labels.names)}


def test_no_two_series_share_a_cell() -> None:
    used: list[int] = []
    for metric in LAYOUT.metrics:
        for values in combinations(metric.labels):
            at = LAYOUT.cell(metric, *values)
            used += range(at, at + metric.width)
    assert sorted(used) == list(range(LAYOUT.size))


def test_only_the_api_servers_metrics_lie_beyond_those_of_all() -> None:
    beyond = {metric.source for metric in LAYOUT.metrics if LAYOUT.offset(metric) >= LAYOUT.shared}
    assert beyond == {kubelet.HTTP_REQUESTS.source}


def test_values_of_labels_are_those_of_the_code() -> None:
    assert set(SYNC_ERRORS) == {*SyncError, CANCELLED}
    assert set(START_ERRORS) - {OTHER} <= {*SyncError}
    assert set(rootlet.ROLES) == {role.value for role in Role}


def test_labels_that_are_unknown_are_refused() -> None:
    with pytest.raises(ValueError, match="not in"):
        LAYOUT.cell(kubelet.POD_WORKER_DURATION, "eat")
    with pytest.raises(ValueError, match="has no labels"):
        LAYOUT.cell(kubelet.STARTED_PODS, "default")


@pytest.fixture(scope="module")
def recorded() -> list[dict[str, Any]]:
    if not RECORDED.exists():
        pytest.skip(f"the record of a kubelet's metrics is not at {RECORDED}")
    found: list[dict[str, Any]] = json.loads(RECORDED.read_text())
    return found


def test_every_metric_of_a_kubelet_is_served_as_it_is_there_or_has_a_reason(recorded: list[dict[str, Any]]) -> None:
    served = {(metric.endpoint.value, metric.name): metric for metric in every_metric()}
    wrong: list[Any] = []
    for entry in recorded:
        name = entry["name"]
        metric = served.get((entry["path"], name))
        reasons = [pattern for pattern in NOT_SERVED if speaks_for(pattern, name)]
        if metric is None and name != kubelet.PROCESS_START_TIME.name:  # that one is on several paths
            wrong += [] if len(reasons) == 1 else [(name, reasons)]
        elif metric is not None:
            labels = set(entry["labels"]) - {"le"}
            same = (metric.type.value, metric.stability.value, set(metric.every_label))
            wrong += [] if same == (entry["type"], entry["stability"] or "", labels) else [(name, same, entry)]
            wrong += [(name, reasons)] if reasons else []
    assert wrong == []


def test_no_reason_is_of_a_metric_that_a_kubelet_has_not(recorded: list[dict[str, Any]]) -> None:
    names = {entry["name"] for entry in recorded}
    assert [pattern for pattern in NOT_SERVED if not any(speaks_for(pattern, name) for name in names)] == []


def test_metrics_that_are_not_the_kubelets_are_ours(recorded: list[dict[str, Any]]) -> None:
    names = {entry["name"] for entry in recorded}
    assert [m.name for m in every_metric() if m.name not in names and not m.name.startswith("rootlet_")] == []
