"""The page of differences between our requests and a kubelet's, with the reason of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.cluster_wire.differences import Difference, differences
from tests.cluster_wire.reasons import REASONS, Reason
from tests.cluster_wire.shapes import Shapes

PAGE: Final = Path(__file__).parents[2] / "docs" / "cluster-requests.md"
_HEAD: Final = """# Requests of a node, beside a kubelet's

What this node asks of an API server, held against what a real kubelet 1.36 has asked in the same scenes: verbs, paths,
query parameters, content types, and which fields bodies have. `tests/e2e/test_cluster_requests.py` lives the scenes on
real Podman against the tests' API server and fails when this page is not what it has seen, or when a difference has no
reason.

"""


def page(theirs: Shapes, ours: Shapes) -> str:
    """The whole page. Raises AssertionError for a difference without a reason, or a reason without a difference."""
    found = list(differences(theirs, ours))
    reasons = [(difference, _reason(difference)) for difference in found]
    unexplained = [difference for difference, reason in reasons if reason is None]
    assert not unexplained, "\n".join(f"{one.kind} | {one.what} | {one.side}" for one in unexplained)
    used = {reason.text for _, reason in reasons if reason is not None}
    stale = [reason for reason in REASONS if reason.text not in used and not reason.varies]
    assert not stale, "no difference is explained by: " + "; ".join(reason.text for reason in stale)
    return _HEAD + "\n".join([*_same(theirs, ours), "", *_differing(reasons), "", *_varying()]) + "\n"


def _reason(difference: Difference) -> Reason | None:
    return next((reason for reason in REASONS if reason.holds_for(difference)), None)


def _same(theirs: Shapes, ours: Shapes) -> Iterator[str]:
    yield "## Requests that both make\n"
    yield "| request |\n| --- |"
    yield from (f"| `{kind}` |" for kind in sorted(theirs.keys() & ours.keys()))


def _differing(reasons: list[tuple[Difference, Reason | None]]) -> Iterator[str]:
    yield "## Differences\n"
    yield "| request | what | whose | why |\n| --- | --- | --- | --- |"
    seen: dict[tuple[str, str, str], set[str]] = {}
    for difference, reason in reasons:
        assert reason is not None
        if reason.varies:
            continue
        what = reason.what or _shown(difference.what)
        seen.setdefault((difference.kind, difference.side, reason.text), set()).add(what)
    for (kind, side, text), whats in seen.items():
        yield f"| `{kind}` | {', '.join(sorted(whats))} | {side} | {text} |"


def _varying() -> Iterator[str]:
    yield "What depends on the moment, and is not compared:\n"
    yield from (f"- `{re.sub('[.^$*]', '', one.kind).strip()}`: {one.text}" for one in REASONS if one.varies)


def _shown(what: str) -> str:
    part, _, rest = what.partition(": ")
    words = {"queries": "parameter", "content_types": "content type", "body": "field"}
    return f"{words[part]} `{re.sub('^[.]', '', rest)}`" if part in words else "the request"
