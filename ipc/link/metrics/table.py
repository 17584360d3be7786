"""All metrics of the agent about itself, and their cells."""

from __future__ import annotations

from typing import Final

from ipc.link.metrics import kubelet, rest_client, rootlet
from ipc.link.metrics.layout import Layout
from ipc.link.metrics.model import Metric

METRICS: Final[tuple[Metric, ...]] = (*kubelet.METRICS, *rest_client.METRICS, *rootlet.METRICS)
"""By name unique. Those of statistics, which nobody counts, are in `workers.statsapi.metrics`."""
LAYOUT: Final = Layout(METRICS)
