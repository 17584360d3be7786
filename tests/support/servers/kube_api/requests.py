"""Requests as the server has got them: what the tests read, and what faults are aimed at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class User:
    """The user that asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def node(self) -> str:
        """Name of the node, when a node asks."""
        is_node = "system:nodes" in self.groups and self.name.startswith("system:node:")
        return self.name.removeprefix("system:node:") if is_node else ""


@dataclass
class Request:
    """One request; its code is filled in when the answer begins."""

    verb: str
    """Verb of HTTP."""
    path: str
    query: Mapping[str, str]
    content_type: str
    body: bytes
    user: str
    headers: Mapping[str, str] = field(default_factory=dict)
    at: float = 0.0
    """Seconds on the loop's clock."""
    code: int = 0
    has_ended: bool = False
    """Whether the stream of a watch is over, whoever has ended it."""

    @property
    def json(self) -> Any:
        """The body, decoded; None where there is none."""
        return json.loads(self.body) if self.body else None

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in ("true", "1")
