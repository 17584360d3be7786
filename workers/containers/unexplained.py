"""Unexpected errors of one container or pod: that one's alone, and logged once."""

from __future__ import annotations

from ipc.eventloop.tasks import FailureLog
from workers.kubecontainer.runtime import RuntimeCallError, unexpected


class Unexplained:
    """The errors by the id of the container or the uid of the pod, until it can be observed."""

    def __init__(self) -> None:
        self._logs: dict[str, FailureLog] = {}

    def note(self, call: str, id: str, error: Exception) -> RuntimeCallError:
        """The error as a failed call. A row of the same errors is logged once."""
        self._logs.setdefault(id, FailureLog(call)).note(error)
        return unexpected(error, call)

    def forget(self, id: str) -> None:
        """The container or pod could be observed, or is gone."""
        self._logs.pop(id, None)
