"""All metrics of the agent, and their cells."""

from __future__ import annotations

from typing import Final

from ipc.metrics import kubelet, rootlet
from ipc.metrics.layout import Layout
from ipc.metrics.model import Metric

METRICS: Final[tuple[Metric, ...]] = (*kubelet.METRICS, *rootlet.METRICS)
"""By name unique; the statistics' own are not among them."""
LAYOUT: Final = Layout(METRICS)
