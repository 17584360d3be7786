"""Events about the outcome of a probe (pkg/kubelet/prober/prober.go, probe)."""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.k8s.kubecontainer.probe_results import ProbeType
from ipc.link.messages.event_reasons import CONTAINER_PROBE_WARNING, CONTAINER_UNHEALTHY, EventReason
from workers.prober.outcome import Answer, ProbeError, ProbeOutcome

MAX_OUTPUT_CHARS: Final = 4096
"""Longest output of a probe that goes to the master for an event: more than the event shows, because a Secret's value
that is cut in two would not be redacted."""


_EVENTS: Final = {
    Answer.WARNING: (CONTAINER_PROBE_WARNING, "warning"),
    Answer.FAILURE: (CONTAINER_UNHEALTHY, "failed"),
}
"""Reason of the event and the word in its message, for an answer that is no plain success."""


class ProbeEvent(msgspec.Struct, frozen=True):
    """A warning about a container."""

    reason: EventReason
    message: str


def outcome_event(type: ProbeType, outcome: ProbeOutcome | ProbeError) -> ProbeEvent | None:
    """None for a plain success."""
    probe = f"{type.value.capitalize()} probe"
    if isinstance(outcome, ProbeError):
        return ProbeEvent(CONTAINER_UNHEALTHY, f"{probe} errored and resulted in unknown state: {_head(str(outcome))}")
    if outcome.answer is Answer.SUCCESS:
        return None
    reason, word = _EVENTS[outcome.answer]
    return ProbeEvent(reason, f"{probe} {word}: {_head(outcome.output)}")


def _head(text: str) -> str:
    """The head of a text, with characters that cannot be encoded escaped."""
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= MAX_OUTPUT_CHARS else text[: MAX_OUTPUT_CHARS - 1] + "…"
