"""The few checks all others are made of. Each yields FieldErrors; the words are in the kinds of
`ipc.k8s.api.errors`."""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec

from ipc.k8s.api.decode import MAX_FIELD_ERRORS
from ipc.k8s.api.errors import FieldError, duplicate, forbidden, invalid, required
from ipc.k8s.api.schema import IS_SET, attribute_values, struct_fields

Errors = Iterator[FieldError]
Problem = Callable[[str], str | None]
"""Says what is wrong with a value, or None."""

MAX_INT32: Final = 2**31 - 1

_T = TypeVar("_T")


def indexed(path: str, items: Sequence[_T]) -> Iterator[tuple[str, _T]]:
    """Each item with its path."""
    return ((f"{path}[{index}]", item) for index, item in enumerate(items))


def needs(path: str, value: str, detail: str = "") -> Errors:
    """The value must not be empty."""
    if not value:
        yield required(path, detail)


def well_formed(path: str, value: str, problem: Problem) -> Errors:
    """The value must be there and have no problem."""
    if not value:
        yield required(path)
    else:
        yield from if_set(path, value, problem)


def if_set(path: str, value: str | None, problem: Problem) -> Errors:
    """The value, when there is one, must have no problem."""
    found = problem(value) if value else None
    if value and found:
        yield invalid(path, value, found)


def in_range(path: str, value: int | None, minimum: int, maximum: int) -> Errors:
    """The number, when there is one, must lie between the two, both included."""
    if value is not None and not minimum <= value <= maximum:
        yield invalid(path, value, f"must be between {minimum} and {maximum}, inclusive")


def at_least(path: str, value: int | None, minimum: int) -> Errors:
    """The number, when there is one, must not be smaller."""
    if value is not None and value < minimum:
        yield invalid(path, value, f"must be greater than or equal to {minimum}")


def unique(items: Iterable[tuple[str, str]]) -> Errors:
    """No value may come twice; given are paths and values, empty values do not count."""
    seen: set[str] = set()
    for path, value in items:
        if value and value in seen:
            yield duplicate(path, value)
        seen.add(value)


def chosen(value: msgspec.Struct, union: type[msgspec.Struct], but: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The JSON names of the members of a union that are set. Upstream's unions are structs of pointers."""
    names, values_of = _members(union, but)
    return tuple(itertools.compress(names, map(IS_SET, values_of(value))))


@functools.cache
def _members(
    union: type[msgspec.Struct], but: tuple[str, ...]
) -> tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]]]:
    """Names of a union's members, and what reads them all."""
    fields = [field for field in struct_fields(union).values() if field.name not in but]
    return tuple(field.name for field in fields), attribute_values(tuple(field.attribute for field in fields))


def at_most_one(path: str, names: Sequence[str]) -> Errors:
    """Errors of a union of which more than one member is set."""
    for name in names[1:]:
        yield forbidden(f"{path}.{name}", f"may not be set together with {names[0]}")


def exactly_one(path: str, names: Sequence[str], what: str) -> Errors:
    """One member of a union must be set."""
    if not names:
        yield required(path, f"must specify {what}")
    yield from at_most_one(path, names)


def first_errors(*findings: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """As many of them as one object is told."""
    return tuple(itertools.islice(itertools.chain(*findings), MAX_FIELD_ERRORS))
