"""Adapters of the groups about label and field selectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json
from workers.api_server.core.status_errors import ApiError
from workers.api_server.store.field_terms import split_term, split_terms, unescaped
from workers.api_server.store.selectors import (
    Operator,
    Requirement,
    all_hold,
    parse_field_selector,
    parse_label_selector,
)

_OPERATORS: Final[Mapping[str, Operator]] = {
    "in": Operator.IN,
    "=": Operator.IN,
    "==": Operator.IN,
    "notin": Operator.NOT_IN,
    "!=": Operator.NOT_IN,
    "exists": Operator.EXISTS,
    "!": Operator.DOES_NOT_EXIST,
    "gt": Operator.GREATER,
    "lt": Operator.LESS,
}
"""Upstream's words. An operation that is not here is a KeyError, which the runner tells."""
_AN_ERROR: Final = "an error"


def _label_selector_parse(case: Json) -> Result:
    expected = _AN_ERROR if case["expect_err"] else _comparable(map(_requirement, case["requirements"]))
    case.get("error")  # the parser's words are its own
    try:
        return expected, _comparable(parse_label_selector(case["input"]))
    except ApiError:
        return expected, _AN_ERROR


def _label_selector_match(case: Json) -> Result:
    if "set_selector" in case:
        wanted = tuple(Requirement(key, Operator.IN, (value,)) for key, value in (case["set_selector"] or {}).items())
    elif "requirements" in case:
        wanted = tuple(map(_requirement, case["requirements"]))
    else:
        wanted = parse_label_selector(case["selector"])
    return case["expected"], all_hold(wanted, case["labels"] or {})


def _field_selector_match(case: Json) -> Result:
    fields = case["labels"] or {}
    if "set_selector" in case:
        wanted = tuple(Requirement(key, Operator.IN, (value,)) for key, value in (case["set_selector"] or {}).items())
    else:
        wanted = parse_field_selector(case["selector"], _AnyField())
    return case["expected"], all_hold(wanted, {**dict.fromkeys((r.key for r in wanted), ""), **fields})


def _field_selector_parse(case: Json) -> Result:
    try:
        parse_field_selector(case["input"], _AnyField())
        got = False
    except ApiError:
        got = True
    return case["expect_err"], got


def _field_selector_split(case: Json) -> Result:
    return case["expected"] or [], split_terms(case["input"])


def _field_selector_term(case: Json) -> Result:
    found, expected = split_term(case["input"]), case["expected"]
    wanted = (expected["lhs"], expected["op"], expected["rhs"]) if expected["ok"] else None
    return wanted, None if found is None else tuple(found)


def _field_selector_escape(case: Json) -> Result:
    """The way back: nothing here escapes a value."""
    value, escaped = case["value"], case["expected_escaped"]
    try:
        return (value, case["invalid"]), (unescaped(value if escaped is None else escaped), False)
    except ValueError:
        return (value, case["invalid"]), (value, True)


class _AnyField(tuple[str, ...]):
    """Every field is known: which ones are is not upstream's parser's affair."""

    __slots__ = ()

    def __contains__(self, _name: object) -> bool:
        return True


def _requirement(data: Mapping[str, Any]) -> Requirement:
    if not data["operator"]:
        raise Later("never: no parser makes a requirement without an operator")
    return Requirement(data["key"], _OPERATORS[data["operator"]], tuple(data["values"]))


def _comparable(requirements: Iterable[Requirement]) -> list[tuple[str, str, list[str]]]:
    return sorted((r.key, r.operator.value, sorted(set(r.values))) for r in requirements)


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "label_selector_parse": _label_selector_parse,
    "label_selector_match": _label_selector_match,
    "field_selector_parse": _field_selector_parse,
    "field_selector_split": _field_selector_split,
    "field_selector_term": _field_selector_term,
    "field_selector_escape": _field_selector_escape,
    "field_selector_match": _field_selector_match,
}
