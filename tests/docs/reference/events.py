"""docs/events.md: every reason of an event. docs/events.toml has who says it and when, the code type and origin."""

from __future__ import annotations

import ast
import itertools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ipc.k8s.nodestatus.conditions import set_pressure
from ipc.k8s.nodestatus.node import NODE_NOT_READY, NODE_READY
from ipc.link.messages import event_reasons
from ipc.link.messages.event_reasons import EventReason
from tests.docs.reference.pages import DOCS, note, plain, table

ROOT: Final = DOCS.parent
TABLE: Final = DOCS / "events.toml"
OUT_OF: Final = "OutOf…"
"""Row of all reasons that begin so; a resource ends them."""
COMPUTED: Final = {"s.reason": OUT_OF, "first.reason": OUT_OF, "*problem": "Evicted", "predicate": ""}
"""First arguments of rejections that are no constants -> their reason. ``predicate`` is given on, and counted where it
is a constant."""
_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")
_INTRODUCTION: Final = f"""\
# Events and their reasons

{note("docs/events.toml and ipc/link/messages/event_reasons.py")}
`rootlet get events` and `rootlet events` show events, `rootlet describe` those of one object. Every reason is here with
its type, the [process](architecture.md#processes-and-links) that says it, and the upstream constant where it is the
kubelet's. [Settings](settings.md) say how many are kept (`eventHistory.maxEvents`) and how long (`eventHistory.ttl`).
"""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reason and type."""

    about: str
    name: str
    type: str
    who: str
    when: str


def rows() -> list[Row]:
    """The file's, in its order."""
    found: list[Row] = msgspec.convert(tomllib.loads(TABLE.read_text()), dict[str, list[Row]])["reason"]
    return found


def render() -> str:
    """The page, Markdown."""
    known = sources()
    text = [_INTRODUCTION]
    for about, group in itertools.groupby(rows(), key=lambda row: row.about):
        lines = ((f"`{row.name}`", row.type, row.who, row.when, _source(row, known)) for row in group)
        text.append(f"\n## {about}\n\n{table(('reason', 'type', 'who says it', 'when', 'upstream'), lines)}")
    return "".join(text)


def _source(row: Row, known: dict[tuple[str, str], list[str]]) -> str:
    named = [source for source in known.get((row.name, row.type), ()) if source]
    return plain(", ".join(dict.fromkeys(named))) if named else "Rootlet's own"


def sources() -> dict[tuple[str, str], list[str]]:
    """Reason and type -> upstream sources, of everything that the code can say."""
    found: dict[tuple[str, str], list[str]] = {}
    for reason in itertools.chain(_stated(), _of_conditions(), map(event_reasons.rejected, rejections())):
        found.setdefault((reason.reason, reason.type.value), []).append(reason.source)
    return found


def _stated() -> Iterator[EventReason]:
    return (value for value in vars(event_reasons).values() if isinstance(value, EventReason))


def _of_conditions() -> Iterator[EventReason]:
    for kind, pressure in itertools.product(_PRESSURES, (True, False)):
        _, told = set_pressure((), kind, pressure=pressure, now="")
        yield from (event_reasons.node_status(event.reason) for event in told)
    yield from map(event_reasons.node_status, (NODE_READY, NODE_NOT_READY))


def rejections() -> set[str]:
    """Reasons for which a pod is not admitted, of the calls in the source that make a rejection."""
    found: set[str] = set()
    for path in sorted((ROOT / "supervisor").rglob("*.py")):
        source = path.read_text()
        if "Rejected" in source:
            found.update(_rejections(path, ast.parse(source)))
    return found - {"", "Evicted"}


def _rejections(path: Path, tree: ast.Module) -> Iterator[str]:
    module = __import__(".".join(path.relative_to(ROOT).with_suffix("").parts), fromlist=["*"])
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("Rejected", "_predicate_failed"):
            match call.args[0]:
                case ast.Constant(value=str() as reason):
                    yield reason
                case ast.Name(id=name) if isinstance(constant := getattr(module, name, None), str):
                    yield constant
                case computed:
                    yield COMPUTED[ast.unparse(computed)]
