"""Label and field selectors as kubectl writes them (apimachinery pkg/labels, selector.go; pkg/fields, selector.go)."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeGuard

import msgspec

from workers.api_server.core.status_errors import bad_request
from workers.api_server.store.field_terms import split_term, split_terms, unescaped

MAX_REQUIREMENTS: Final = 64
"""Most requirements in one selector."""
MAX_SELECTOR_CHARS: Final = 2048
"""Longest selector, in characters."""

_KEY: Final = r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?"
_SET: Final = re.compile(rf"(?P<key>{_KEY})\s++(?P<operator>in|notin)\s*+\((?P<values>[^()]*+)\)")
_EQUALITY: Final = re.compile(rf"(?P<key>{_KEY})\s*+(?P<operator>==|=|!=)\s*+(?P<value>[A-Za-z0-9._-]*+)")
_COMPARISON: Final = re.compile(rf"(?P<key>{_KEY})\s*+(?P<operator>[<>])\s*+(?P<value>-?[0-9]{{1,19}})")
_VALUE: Final = re.compile(r"[A-Za-z0-9._-]*+")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_EXISTENCE: Final = re.compile(rf"(?P<operator>!?)\s*+(?P<key>{_KEY})")
_MARK: Final = re.compile(r"[(),]")


class Operator(enum.StrEnum):
    """As in meta/v1 NodeSelectorOperator: `kubectl` compares numbers too."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


_OPERATORS: Final[Mapping[str, Operator]] = {
    "=": Operator.IN,
    "==": Operator.IN,
    "in": Operator.IN,
    "!=": Operator.NOT_IN,
    "notin": Operator.NOT_IN,
    "": Operator.EXISTS,
    "!": Operator.DOES_NOT_EXIST,
    ">": Operator.GREATER,
    "<": Operator.LESS,
}


class Requirement(msgspec.Struct, frozen=True):
    """One term of a selector; all terms must hold."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """An absent key fulfils NotIn, as upstream."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GREATER:
                return _is_number(value) and int(value) > int(self.values[0])
            case Operator.LESS:
                return _is_number(value) and int(value) < int(self.values[0])


def _is_number(value: str | None) -> TypeGuard[str]:
    return value is not None and _NUMBER.fullmatch(value) is not None


def all_hold(requirements: Sequence[Requirement], values: Mapping[str, str]) -> bool:
    """Whether an object with these labels (or fields) is selected."""
    return all(requirement.holds(values) for requirement in requirements)


def parse_label_selector(text: str) -> tuple[Requirement, ...]:
    """``app=web,tier!=db,env in (a, b),!legacy``. Raises ApiError 400."""
    return tuple(_label_requirement(term) for term in _bounded(text, _split))


def parse_field_selector(text: str, known: Collection[str]) -> tuple[Requirement, ...]:
    """``metadata.name=web``; only fields in ``known``. Raises ApiError 400."""
    return tuple(_field_requirement(term, known) for term in _bounded(text, split_terms) if term)


def _bounded(text: str, split: Callable[[str], list[str]]) -> list[str]:
    if len(text) > MAX_SELECTOR_CHARS:
        raise bad_request(f"selector has {len(text)} characters, the maximum is {MAX_SELECTOR_CHARS}")
    terms = [term.strip() for term in split(text)] if text.strip() else []
    if len(terms) > MAX_REQUIREMENTS:
        raise bad_request(f"selector has {len(terms)} requirements, the maximum is {MAX_REQUIREMENTS}")
    return terms


def _split(text: str) -> list[str]:
    """At every comma outside of parentheses."""
    terms: list[str] = []
    begin, is_inside = 0, False
    for mark in _MARK.finditer(text):
        if mark[0] != ",":
            is_inside = mark[0] == "("
        elif not is_inside:
            terms.append(text[begin : mark.start()])
            begin = mark.end()
    return [*terms, text[begin:]]


def _label_requirement(term: str) -> Requirement:
    if found := _SET.fullmatch(term):
        values = tuple(value.strip() for value in found["values"].split(","))
        if not all(map(_VALUE.fullmatch, values)):
            raise bad_request(f"unable to parse label selector requirement: {term!r}")
        return Requirement(found["key"], _OPERATORS[found["operator"]], values)
    if found := _EQUALITY.fullmatch(term) or _COMPARISON.fullmatch(term):
        return Requirement(found["key"], _OPERATORS[found["operator"]], (found["value"],))
    if found := _EXISTENCE.fullmatch(term):
        return Requirement(found["key"], _OPERATORS[found["operator"]])
    raise bad_request(f"unable to parse label selector requirement: {term!r}")


def _field_requirement(term: str, known: Collection[str]) -> Requirement:
    found = split_term(term)
    if found is None:
        raise bad_request(f"unable to parse field selector requirement: {term!r}")
    field = found.field.strip()
    if field not in known:
        raise bad_request(f"field label not supported: {field}; supported: {', '.join(sorted(known))}")
    try:
        return Requirement(field, _OPERATORS[found.operator], (unescaped(found.value.strip()),))
    except ValueError as error:
        raise bad_request(str(error)) from None
