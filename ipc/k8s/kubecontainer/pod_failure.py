"""Failure of a pod that the agent ends itself: what its status says whatever its containers say. Pure.

As text it is the mark of an evicted pod (`ipc.host.eviction_marks`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.text.json_types import UNDECODABLE

EVICTED: Final = "Evicted"
"""pkg/kubelet/eviction/helpers.go, Reason."""


class PodFailure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reason and message of a pod that is Failed."""

    reason: str
    message: str
    disruption: str = ""
    """Message of the condition DisruptionTarget, which is True from the pod's end on; empty: without it."""


def encode_failure(failure: PodFailure) -> str:
    return msgspec.json.encode(failure).decode()


def decode_failure(text: str) -> PodFailure:
    """A text that is no encoded failure is the message of an eviction: agents wrote that alone once."""
    try:
        return msgspec.json.decode(text, type=PodFailure)
    except UNDECODABLE:
        return PodFailure(reason=EVICTED, message=text)
