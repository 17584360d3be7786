"""Errors of asking an agent, and the v1 Status that an agent answers with (k8s.io/apimachinery/pkg/api/errors)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ipc.host.text.json_types import UNDECODABLE, Json, JsonObject


class AgentError(Exception):
    """Asking the agent failed; the text is for people."""


class AgentUnreachable(AgentError):
    """No agent answers on the socket."""

    def __init__(self, socket: Path, error: OSError) -> None:
        from supervisor.client.unreachable import unreachable_words

        super().__init__(unreachable_words(socket, error))


class ConnectionLost(AgentError):
    """The answer broke off: the API server died, or hangs."""


class RequestFailed(AgentError):
    """The agent answered with a v1 Status. Its text is in kubectl's form."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(_words(reason, message))
        self.code = code
        self.reason = reason
        self.message = message


def _words(reason: str, message: str) -> str:
    """As kubectl says it (k8s.io/kubectl pkg/cmd/util, StandardErrorMessage)."""
    if reason == "Invalid" and " is invalid" in message:
        return f"The {message}"
    return f"Error from server ({reason}): {message}" if reason else f"Error from server: {message}"


def raise_for_status(code: int, content: bytes) -> None:
    """Raises RequestFailed for a v1 Status, ConnectionLost for what is none."""
    if code >= 400:
        raise_status(decode_object(content))


def raise_status(status: Json) -> None:
    """Raises RequestFailed with what a v1 Status says."""
    raise RequestFailed(int(status.get("code", 500)), str(status.get("reason", "")), str(status.get("message", "")))


def decode_object(content: bytes) -> JsonObject:
    """The JSON object that an agent has answered. Raises ConnectionLost for what no agent of ours sends."""
    try:
        found = msgspec.json.decode(content)
    except UNDECODABLE:
        found = None
    if not isinstance(found, dict):
        raise ConnectionLost(f"another program than a Rootlet agent answers there: {content[:80]!r}")
    return found
