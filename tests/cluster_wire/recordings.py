"""Talk of a real kubelet 1.36 and a real API server, where the recordings lie beside the checkout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.kubelet_tables.runner import SHARED

RECORDINGS: Final[Path] = SHARED / "kubernetes_wire.json"


class Recorded(NamedTuple):
    """One request with its answer, or one event of a watch."""

    scene: str
    step: int
    client: str
    verb: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Headers of the request, by lower-case names."""
    body: Any
    """Decoded where it is JSON; None without one."""
    code: int
    answer: Any
    is_event: bool
    """The answer is an event of a watch that was opened earlier."""
    time_s: float

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "true"


@cache
def _all() -> tuple[Recorded, ...]:
    return tuple(_recorded(found) for found in json.loads(RECORDINGS.read_text())["records"] if "method" in found)


def _recorded(found: Mapping[str, Any]) -> Recorded:
    return Recorded(
        scene=found["scene"],
        step=found["step"],
        client=found["client"],
        verb=found["method"],
        path=found["path"],
        query=dict(found["query"]),
        headers={name.lower(): value for name, value in found["request_headers"].items()},
        body=found["request_body"],
        code=found["status"],
        answer=found.get("response_body"),
        is_event=bool(found.get("watch_event")),
        time_s=found.get("time", 0.0),
    )


def recordings() -> tuple[Recorded, ...]:
    """All of them; the test is skipped where they are not there."""
    if not RECORDINGS.exists():
        pytest.skip(f"not there: {RECORDINGS}")
    return _all()


def scenes(prefix: str) -> tuple[Recorded, ...]:
    """Recordings whose scene begins so."""
    return tuple(found for found in recordings() if found.scene.startswith(prefix))
