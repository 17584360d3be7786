"""Order of a mapping's keys as kubectl prints them: numbers in them by value, letters last. Pure.

Source: goyaml.v2 of sigs.k8s.io/yaml, sorter.go.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final

_DIGITS: Final = frozenset("0123456789")


def in_order(keys: Iterable[str]) -> list[str]:
    """``a2`` before ``a10``, ``a_b`` before ``aB``; a comparison is linear in the keys.

    Upstream's order has circles (``a1x``, ``a01``, ``a10``): the same keys come in one order all the same.
    """
    return sorted(sorted(keys), key=functools.cmp_to_key(_compare))


def _compare(one: str, other: str) -> int:
    at = _first_difference(one, other)
    if at == min(len(one), len(other)):
        return len(one) - len(other)
    if one[at].isalpha() or other[at].isalpha():
        if one[at].isalpha() and other[at].isalpha():
            return -1 if one[at] < other[at] else 1
        return -1 if other[at].isalpha() else 1
    begun = "0" in (one[at], other[at]) and _is_within_number(one, at)
    number, digits = _number(one, at, begun=begun)
    other_number, other_digits = _number(other, at, begun=begun)
    if number != other_number:
        return -1 if number < other_number else 1
    if digits != other_digits:
        return digits - other_digits
    return -1 if one[at] < other[at] else 1


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (here, there) in pairs if here != there), min(len(one), len(other)))


def _is_within_number(text: str, at: int) -> bool:
    """Whether digits that are not all zeros stand right before it."""
    before = text[:at]
    return bool(before[len(before.rstrip("0123456789")) :].strip("0"))


def _number(text: str, at: int, *, begun: bool) -> tuple[tuple[int, str], int]:
    """Size and digits of the number there, which are in order as its value is, and how many digits it is written in."""
    end = at
    while end < len(text) and text[end] in _DIGITS:
        end += 1
    value = ("1" if begun else "") + text[at:end]
    value = value.lstrip("0")
    return (len(value), value), end - at
