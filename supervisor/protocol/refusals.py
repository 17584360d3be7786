"""The refusal of a request, as an answer of HTTP has it."""

from __future__ import annotations


class RequestRefused(Exception):
    """A request cannot be carried out; the text says why."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        """``code`` and ``reason`` as of an answer of Kubernetes' API server."""
        super().__init__(message)
        self.code = code
        self.reason = reason
