"""Target and outcome of one attempt of a probe."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import Container
from workers.podhttp.pod_network import PodNetwork

MAX_OUTPUT_BYTES: Final = 10 * 1024
"""Most that is read of an answer or a command's output, in bytes (pkg/probe/http and pkg/probe/exec, maxReadLength)."""


class Answer(enum.StrEnum):
    """pkg/probe/probe.go, Result."""

    SUCCESS = "success"
    WARNING = "warning"
    """A success with an event, e.g. of a redirect to another host."""
    FAILURE = "failure"


class ProbeOutcome(msgspec.Struct, frozen=True):
    """A probe that was carried out."""

    answer: Answer
    output: str = ""
    """For people: the head of what was answered, or why nothing was."""


class ProbeError(Exception):
    """The probe could not be carried out: nothing is known about the container (upstream's Unknown with an error)."""


class ProbeTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The container that is probed."""

    container: Container
    """Manifest of the container: named ports and literal environment variables come from there."""
    container_id: str
    network: PodNetwork
