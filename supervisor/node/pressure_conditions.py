"""The node's conditions of pressure: a round for each observation of the node, dates and events of the conditions."""

from __future__ import annotations

from typing import Final

from ipc.host.clock import Instant, rfc3339
from ipc.k8s.eviction.file_systems import Layout, layout_of, with_containerfs
from ipc.k8s.eviction.signals import NodePressure
from ipc.k8s.eviction.thresholds import Threshold
from ipc.k8s.nodestatus.conditions import set_pressure
from ipc.k8s.nodestatus.node import NodeCondition
from ipc.link.messages import event_reasons
from ipc.link.messages.base import node_event
from ipc.link.messages.node_worker import NodeObserved
from supervisor.config.resolution.node_thresholds import node_thresholds
from supervisor.eviction.rounds import PressureState, next_round
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.pod_reporter import PodReporter

PERIOD_S: Final = 10.0
"""A round is due so long after the last one while the node has a condition (evictionMonitoringPeriod)."""


class PressureConditions:
    """Owns what one round leaves to the next."""

    def __init__(self, node: ThisNode, reporter: PodReporter) -> None:
        self._node = node
        self._reporter = reporter
        self._thresholds = node_thresholds(node.view.settings, node.view.resources)
        self._round_at = 0.0
        """Monotonic time of the last round."""
        self.state = PressureState()
        self.layout = Layout.ONE
        self.dated: tuple[NodeCondition, ...] = ()
        """Conditions of pressure with their times; empty before the first moment of the loop."""

    def observed(self, seen: NodeObserved, now: Instant) -> tuple[Threshold, ...]:
        """A round. Returns the thresholds to act on, the most urgent first."""
        self.layout = layout_of(has_image_fs=seen.has_image_fs, is_split=seen.is_split)
        return self._round(seen, now)

    def _round(self, seen: NodeObserved, now: Instant) -> tuple[Threshold, ...]:
        thresholds = with_containerfs(self._thresholds, self.layout)
        period_s = self._node.view.settings.eviction_pressure_transition_period_s
        found = next_round(self.state, thresholds, seen.signals, period_s, now.mono)
        self.state, self._round_at = found.state, now.mono
        self._node.pressures_changed(found.state.conditions)
        self._date(now)
        return found.thresholds

    def _date(self, now: Instant) -> None:
        """Dates of the conditions, and an event for each change; that there is no pressure at first is no change."""
        is_first, node_name = not self.dated, self._node.view.settings.node_name
        for kind in NodePressure:
            pressure = kind in self.state.conditions
            self.dated, events = set_pressure(self.dated, kind, pressure=pressure, now=rfc3339(now.wall))
            for event in events if pressure or not is_first else ():
                words = f"Node {node_name} status is now: {event.reason}"
                self._reporter.event(node_event(node_name, event_reasons.node_status(event.reason), words), now)

    def end_due(self, now: Instant) -> None:
        """Conditions end some time after the last threshold was met, when nothing is told any more."""
        if not self.dated:
            self._date(now)
        if self.state.conditions and now.mono - self._round_at >= PERIOD_S:
            self._round(NodeObserved(signals=dict(self.state.observations)), now)
