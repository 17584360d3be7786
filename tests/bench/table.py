"""The table of `make bench`: each row a value that says what is measured, beside what, and at what it aims. Pure.

`tests.bench.phases` records figures by name, for raw libpod calls and for Rootlet, round by round; a row picks one.
"""

from __future__ import annotations

import enum
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from ipc.link.metrics.kubelet import RUNTIME_OPERATIONS
from tests.bench import budgets
from tests.bench.intervals import Interval, interval, ratio_text


class Side(enum.StrEnum):
    """The side that does the work that is measured."""

    RAW = "raw"
    ROOTLET = "rootlet"


class Better(enum.StrEnum):
    """Direction of a figure."""

    HIGHER = "higher"
    LOWER = "lower"


class Plan(msgspec.Struct, frozen=True):
    """One population, in which every round is measured."""

    name: str
    pods: int
    """Started, stopped and looked at by each side."""
    others: int
    """Rootlet's pods that run meanwhile on the same Podman."""

    def scaled(self, divisor: int) -> Plan:
        """A smaller one of the same kind."""
        return Plan(self.name, max(2, self.pods // divisor), math.ceil(self.others / divisor))


class Aim(msgspec.Struct, frozen=True):
    """The limit of a figure, of its ratio to the raw one, or none."""

    limit: float
    of_raw: bool = False
    per_pod: float = 0.0
    """Added to the limit for each pod of the plan."""

    def limit_of(self, plan: Plan) -> float:
        return self.limit + self.per_pod * plan.pods

    def shown(self, plan: Plan, better: Better) -> str:
        sign = "≥" if better is Better.HIGHER else "≤"
        return f"{sign} {self.limit_of(plan):.3g}{' of raw' if self.of_raw else ''}"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    name: str
    plan: Plan
    figure: str
    """``phase.name``, the same on both sides."""
    unit: str
    better: Better = Better.LOWER
    aim: Aim | None = None
    part: float = 0.5
    """The quantile of a round's samples that counts."""
    detail: bool = False
    """Shown where there is a figure."""

    @property
    def phase(self) -> str:
        return self.figure.partition(".")[0]


EMPTY: Final = Plan("empty host", 60, 0)
BESIDE: Final = Plan("beside 300", 60, 300)
MANY: Final = Plan("300 pods", 300, 0)
"""The population that is there meanwhile: it is started once, for its own figures and all rounds of `BESIDE`."""
PLANS: Final = (EMPTY, BESIDE, MANY)
PROCESSES: Final = ("master", "zygote", "node", "pods", "api", "service")
OPERATIONS: Final = tuple(dict.fromkeys(RUNTIME_OPERATIONS.values()))
"""Operations by which Podman's calls are told apart."""
AS_RAW: Final = Aim(0.95, of_raw=True)
CPU_AS_RAW: Final = Aim(1.05, of_raw=True)


def _starts(plan: Plan) -> Iterator[Row]:
    yield Row(name="starts", plan=plan, figure="start.rate", unit="pods/s", better=Better.HIGHER, aim=AS_RAW)
    yield Row(name="starts: CPU of Podman's service", plan=plan, figure="start.service_s", unit="s", aim=CPU_AS_RAW)
    yield Row(name="starts: first instruction, p50", plan=plan, figure="start.first_s", unit="s")
    yield Row(name="starts: first instruction, p99", plan=plan, figure="start.first_s", unit="s", part=0.99)
    yield Row(name="starts: Ready, p50", plan=plan, figure="start.ready_s", unit="s")
    for process in PROCESSES:
        yield Row(name=f"CPU per pod started: {process}", plan=plan, figure=f"start.cpu_ms.{process}", unit="ms")
    yield Row(name="removal", plan=plan, figure="stop.rate", unit="pods/s", better=Better.HIGHER, aim=AS_RAW)
    yield Row(name="removal: CPU of Podman's service", plan=plan, figure="stop.service_s", unit="s", aim=CPU_AS_RAW)
    yield from _conditions(plan, "starts", "start")
    yield from _conditions(plan, "removal", "stop")
    yield from _calls(plan, "start", "started")
    yield from _calls(plan, "stop", "stopped")


def _conditions(plan: Plan, name: str, phase: str) -> Iterator[Row]:
    """Rows of the circumstances on which CPU time depends beside the work, and the service's by the machine's speed of
    that moment. A database of another kind has no free pages."""
    yield Row(name=f"{name}: the machine's yardstick", plan=plan, figure=f"{phase}.yardstick_ms", unit="ms")
    yield Row(name=f"{name}: CPU of the service by it", plan=plan, figure=f"{phase}.service_yards", unit="yardsticks")
    of = f"{name}: free pages of Podman's database"
    yield Row(name=of, plan=plan, figure=f"{phase}.free_pages", unit="pages", detail=True)


def _plain_removal(plan: Plan) -> Row:
    name = "removal, raw by Podman's own settings"
    return Row(name=name, plan=plan, figure="stop.plain_rate", unit="pods/s", better=Better.HIGHER, aim=AS_RAW)


def _filtered_starts(plan: Plan) -> Row:
    """Row that leaves out what filters save."""
    name = "starts, raw with the same seccomp filters"
    return Row(name=name, plan=plan, figure="start.filtered_rate", unit="pods/s", better=Better.HIGHER)


def _default_store(plan: Plan) -> Iterator[Row]:
    """Rows of a run on the transient store, beside raw calls on the default one."""
    for name, figure, limit in (("starts", "start", 1.3), ("removal", "stop", 1.8)):
        yield Row(
            name=f"{name}, raw on the default store",
            plan=plan,
            figure=f"{figure}.default_store_rate",
            unit="pods/s",
            better=Better.HIGHER,
            aim=Aim(limit, of_raw=True),
            detail=True,
        )


def _calls(plan: Plan, phase: str, done: str) -> Iterator[Row]:
    """Rows of the calls that are counted in that phase: all, and those of each operation that was asked for."""
    name = f"Podman calls per pod {done}"
    yield Row(name=name, plan=plan, figure=f"{phase}.calls", unit="calls")
    for each in OPERATIONS:
        yield Row(name=f"{name}: {each}", plan=plan, figure=f"{phase}.calls.{each}", unit="calls", detail=True)


def _restarts(plan: Plan) -> Iterator[Row]:
    yield from _calls(plan, "restart", "restarted")
    name = "CPU of Podman's service per restart"
    yield Row(name=name, plan=plan, figure="restart.service_ms", unit="ms", aim=CPU_AS_RAW)
    for part, limit in ((0.5, 1.5), (0.9, None), (0.99, 2.0)):
        aim = Aim(limit, of_raw=True) if limit is not None else None
        name = f"kill -9 → successor's first instruction, p{100 * part:.0f}"
        yield Row(name=name, plan=plan, figure="restart.first_s", unit="s", aim=aim, part=part)


def _idling(plan: Plan, rootlet_percent: float, service_percent: float) -> Iterator[Row]:
    yield Row(name="idle CPU of Rootlet", plan=plan, figure="idle.rootlet", unit="%", aim=Aim(rootlet_percent))
    yield Row(name="idle CPU of the service", plan=plan, figure="idle.service", unit="%", aim=Aim(service_percent))
    yield from _calls(plan, "idle", "resynced")


def _memory(plan: Plan) -> Iterator[Row]:
    """PSS has the budgets for its aims. *Anonymous* is the part of it that is no file's: it does not depend on who else
    on the host runs the same Python."""
    for name, phase, state in (
        ("nobody looking", "idle", budgets.LEFT_ALONE),
        ("being looked at", "looked", budgets.LOOKED_AT),
    ):
        for role in (budgets.ALL, *PROCESSES[:-1]):
            of = f"{name}: {role}" if role != budgets.ALL else name
            base_mib = budgets.base(state, role)
            aim = Aim(base_mib, per_pod=budgets.per_pod(role)) if base_mib is not None else None
            detail = base_mib is None
            yield Row(name=f"PSS, {of}", plan=plan, figure=f"{phase}.pss.{role}", unit="MiB", aim=aim, detail=detail)
            if role == budgets.ALL:
                yield Row(name=f"anonymous memory, {of}", plan=plan, figure=f"{phase}.anonymous.{role}", unit="MiB")


def _command(plan: Plan) -> Iterator[Row]:
    """`rootlet get pods`: machines differ, so that others stand beside it."""
    for other, prefix, aim in (("python -c pass", "", Aim(0.1)), ("kubectl get pods", "kubectl_", None)):
        for of, figure in (("", "wall_s"), (", CPU", "cpu_s")):
            name = f"`rootlet get pods`{of} (raw: `{other}`)"
            yield Row(name=name, plan=plan, figure=f"get.{prefix}{figure}", unit="s", aim=aim, detail=aim is None)


def _agent_kill(plan: Plan) -> Iterator[Row]:
    yield Row(name="agent killed: first answer", plan=plan, figure="respawn.answer_s", unit="s", aim=Aim(0.5))
    yield Row(name="agent killed: all statuses", plan=plan, figure="respawn.ready_s", unit="s", aim=Aim(1.5))


TABLE: Final[tuple[Row, ...]] = (
    *_starts(EMPTY),
    _filtered_starts(EMPTY),
    _plain_removal(EMPTY),
    *_default_store(EMPTY),
    *_restarts(EMPTY),
    *_memory(EMPTY),
    *_idling(EMPTY, 0.15, 0.2),
    *_command(EMPTY),
    *_starts(BESIDE),
    _filtered_starts(BESIDE),
    _plain_removal(BESIDE),
    *_restarts(BESIDE),
    *_starts(MANY),
    *_memory(MANY),
    *_idling(MANY, 0.4, 0.5),
    *_agent_kill(MANY),
)
"""As the aims were agreed on; rows without an aim say where the time of the others goes."""

Rounds = Mapping[str, Sequence[Sequence[float]]]
"""By figure: the samples of each round."""
Figures = Mapping[Side, Rounds]


class Spread(msgspec.Struct, frozen=True):
    """One side of a row: over the rounds."""

    median: float
    low: float
    high: float
    rounds: tuple[float, ...]

    def shown(self) -> str:
        return f"{self.median:.4g} ({self.low:.4g} to {self.high:.4g})"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A measured row."""

    name: str
    plan: Plan
    unit: str
    raw: Spread | None
    rootlet: Spread | None
    ratio: float | None
    """Ratio of Rootlet to raw: the median of the rounds' ratios, as both were measured in turns."""
    interval: Interval | None
    """Where the true one is; None for too few rounds."""
    aim: str
    met: bool | None
    """None without an aim, or without a figure."""
    detail: bool
    """As that of the row."""

    @property
    def verdict(self) -> str:
        return {True: "met", False: "missed", None: "-"}[self.met]


class _Known(msgspec.Struct, frozen=True):
    name: str
    plan: Plan
    rootlet: Spread | None


class _Rows(msgspec.Struct, frozen=True):
    rows: tuple[_Known, ...]


def outcome(row: Row, figures: Figures) -> Outcome:
    """Outcome that the figures give a row."""
    raw, rootlet = (spread(figures.get(side, {}).get(row.figure, ()), row.part) for side in Side)
    ratios = _ratios(raw, rootlet)
    ratio = statistics.median(ratios) if ratios else None
    return Outcome(
        name=row.name,
        plan=row.plan,
        unit=row.unit,
        raw=raw,
        rootlet=rootlet,
        ratio=ratio,
        interval=interval(ratios),
        aim=row.aim.shown(row.plan, row.better) if row.aim is not None else "-",
        met=_is_met(row, rootlet, ratio),
        detail=row.detail,
    )


def spread(rounds: Sequence[Sequence[float]], part: float) -> Spread | None:
    """Median over the rounds of that quantile of each; None without samples."""
    values = tuple(quantile(samples, part) for samples in rounds if samples)
    return Spread(statistics.median(values), min(values), max(values), values) if values else None


def quantile(samples: Sequence[float], part: float) -> float:
    """The smallest sample that so large a part of them does not exceed."""
    return sorted(samples)[max(0, math.ceil(part * len(samples)) - 1)]


def _ratios(raw: Spread | None, rootlet: Spread | None) -> Sequence[float]:
    """The rounds' ratios, or the one of the medians where not as many rounds were measured of both."""
    if raw is None or rootlet is None or not all(raw.rounds):
        return ()
    if len(rootlet.rounds) != len(raw.rounds):
        return (rootlet.median / raw.median,)
    return [ours / theirs for ours, theirs in zip(rootlet.rounds, raw.rounds, strict=True)]


def _is_met(row: Row, rootlet: Spread | None, ratio: float | None) -> bool | None:
    found = ratio if row.aim is not None and row.aim.of_raw else rootlet.median if rootlet is not None else None
    if row.aim is None or found is None:
        return None
    limit = row.aim.limit_of(row.plan)
    return found >= limit if row.better is Better.HIGHER else found <= limit


HEADER: Final = ("what", "raw", "Rootlet", "of raw", "unit", "aim", "")


def as_text(outcomes: Sequence[Outcome], before: Mapping[str, float] | None = None) -> str:
    """A table for each plan of which anything was measured. ``before``: medians of another run by `key`, shown beside
    these."""
    plans = dict.fromkeys(each.plan for each in outcomes if each.raw is not None or each.rootlet is not None)
    return "\n".join(_plan_text(plan, [o for o in outcomes if o.plan == plan], before) for plan in plans)


def as_json(outcomes: Sequence[Outcome], about: Mapping[str, Any]) -> str:
    """One object with the rows and what is to be known about the run."""
    rows = [msgspec.to_builtins(outcome) | {"verdict": outcome.verdict} for outcome in outcomes]
    return json.dumps({**about, "rows": rows}, indent=1) + "\n"


def medians(text: str) -> dict[str, float]:
    """Rootlet's by `key`, of what `as_json` has written."""
    found = msgspec.json.decode(text, type=_Rows).rows
    return {key(each): each.rootlet.median for each in found if each.rootlet is not None}


def key(outcome: Outcome | _Known) -> str:
    """Names a row in every run."""
    return f"{outcome.plan.name}: {outcome.name}"


def _plan_text(plan: Plan, outcomes: Sequence[Outcome], before: Mapping[str, float] | None) -> str:
    header = HEADER if before is None else (*HEADER, "before")
    shown = (each for each in outcomes if not each.detail or each.raw is not None or each.rootlet is not None)
    rows = [header, *(_cells(outcome, before) for outcome in shown)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return f"\n{plan.name}: {plan.pods} pods, {plan.others} others\n" + "\n".join(lines) + "\n"


def _cells(outcome: Outcome, before: Mapping[str, float] | None) -> tuple[str, ...]:
    ratio = ratio_text(outcome.ratio, outcome.interval) if outcome.ratio is not None else "-"
    sides = (side.shown() if side is not None else "-" for side in (outcome.raw, outcome.rootlet))
    cells = (outcome.name, *sides, ratio, outcome.unit, outcome.aim, outcome.verdict)
    if before is None:
        return cells
    known = before.get(key(outcome))
    return (*cells, f"{known:.4g}" if known is not None else "-")
