"""Resource quantities: `250m`, `1.5Gi`, `12e6`. Exact arithmetic, no floating point.

Source: apimachinery pkg/api/resource/quantity.go, ParseQuantity, CanonicalizeBytes and the grammar in the comment of
Quantity. Differs on purpose: text that only the parser accepts and the grammar does not ("", ".", "k", "+") is refused,
and so is an exponent beyond MAX_EXPONENT; what is written in another than the canonical form is never repeated as it
was written; and an amount beyond the largest suffix keeps that suffix, where upstream loses it.
"""

import enum
import functools
import math
import re
from fractions import Fraction
from typing import Final

import msgspec

from ipc.k8s.api.v1.base import Quantity

MAX_QUANTITY_CHARS: Final = 64
"""Longest quantity accepted, in characters, both as it is written and in canonical form."""
MAX_EXPONENT: Final = 64
"""Largest magnitude of a decimal exponent; 2**63-1, the largest amount Kubernetes promises to carry, needs 19."""
MAX_BINARY_VALUE: Final = 2**63 - 1
"""Amounts with a binary suffix are capped here, as upstream does."""

MAX_UNITS: Final = 2**63 - 1
"""Largest amount in units: a greater one does not fit into 64 bits and is given as this."""

REMEMBERED: Final = 256
"""Texts whose amounts are remembered: pods of one manifest say the same, with each of their syncs."""
_NOT_A_QUANTITY: Final = "must be a number with an optional suffix such as m, k, M, Ki, Mi or e3"
_PATTERN: Final = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d+))?", re.ASCII)
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_SUFFIXES: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY_EXPONENTS: Final = {suffix: 10 * index for index, suffix in enumerate(_BINARY_SUFFIXES) if suffix}
_DECIMAL_EXPONENTS: Final = {suffix: 3 * index - 9 for index, suffix in enumerate(_DECIMAL_SUFFIXES) if suffix}
_KIBI: Final = 1024
_KILO: Final = 1000
_MILLI: Final = 10**3
_NANO: Final = 10**9


class QuantityError(ValueError):
    """The text is no quantity."""


class Notation(enum.Enum):
    """How an amount is written: it stays the one of the text that it was read from."""

    DECIMAL = "12M"
    BINARY = "12Mi"
    EXPONENT = "12e6"


class Amount(msgspec.Struct, frozen=True):
    """A quantity that was read."""

    value: Fraction
    """In whole nanos."""
    notation: Notation = Notation.DECIMAL

    def __str__(self) -> str:
        """Canonical form of the quantity."""
        return format_quantity(self.value, self.notation)


def parse_quantity(quantity: Quantity) -> Fraction:
    """The value of a quantity, rounded away from zero to whole nanos. Raises QuantityError."""
    return parse_amount(quantity).value


def parse_amount(quantity: Quantity) -> Amount:
    """The value of a quantity, rounded away from zero to whole nanos, and how it is written. Raises QuantityError."""
    text = quantity.strip() if isinstance(quantity, str) else repr(quantity)
    if len(text) > MAX_QUANTITY_CHARS:
        raise QuantityError(_NOT_A_QUANTITY)
    return _parsed(text)


@functools.lru_cache(REMEMBERED)
def _parsed(text: str) -> Amount:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise QuantityError(_NOT_A_QUANTITY)
    sign, number, binary, decimal, exponent = match.groups()
    magnitude = Fraction(number) * _scale(binary, decimal, exponent)
    if binary:
        magnitude = min(magnitude, Fraction(MAX_BINARY_VALUE))
    rounded = _ceil_to(magnitude, _NANO)
    notation = Notation.BINARY if binary else Notation.EXPONENT if exponent else Notation.DECIMAL
    amount = Amount(-rounded if sign == "-" else rounded, notation)
    if len(str(amount)) > MAX_QUANTITY_CHARS:  # what is given out has to be accepted again
        raise QuantityError(_NOT_A_QUANTITY)
    return amount


def _scale(binary: str | None, decimal: str | None, exponent: str | None) -> Fraction:
    if binary:
        return Fraction(2 ** _BINARY_EXPONENTS[binary])
    power = _DECIMAL_EXPONENTS[decimal] if decimal else int(exponent or 0)
    if abs(power) > MAX_EXPONENT:
        raise QuantityError(f"exponent must be between -{MAX_EXPONENT} and {MAX_EXPONENT}")
    return Fraction(10) ** power


def _ceil_to(value: Fraction, parts: int) -> Fraction:
    return Fraction(-(-value.numerator * parts // value.denominator), parts)


def format_quantity(value: Fraction, notation: Notation = Notation.DECIMAL) -> str:
    """The canonical form of so many whole nanos: no fraction, nothing lost, the largest suffix that does that.

    Binary suffixes are for whole numbers of 1024 and more; smaller ones and fractions are written in decimal.
    """
    # In integers: a product of fractions would be reduced first.
    return _format_nanos(-(-value.numerator * _NANO // value.denominator), notation)


@functools.lru_cache(REMEMBERED)
def _format_nanos(nanos: int, notation: Notation) -> str:
    if nanos == 0:
        return "0"
    units, rest = divmod(nanos, _NANO)
    if notation is Notation.BINARY and abs(units) >= _KIBI and not rest:
        mantissa, times = _without_factors(units, _KIBI, len(_BINARY_SUFFIXES) - 1)
        return f"{mantissa}{_BINARY_SUFFIXES[times]}"
    return _format_decimal(nanos, notation)


def _format_decimal(nanos: int, notation: Notation) -> str:
    """Source: amount.go, AsCanonicalBytes: the exponent is a multiple of three."""
    if notation is Notation.EXPONENT:
        mantissa, times = _without_factors(nanos, _KILO, MAX_EXPONENT)
        exponent = 3 * times - 9
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    mantissa, times = _without_factors(nanos, _KILO, len(_DECIMAL_SUFFIXES) - 1)
    return f"{mantissa}{_DECIMAL_SUFFIXES[times]}"


def _without_factors(number: int, factor: int, at_most: int) -> tuple[int, int]:
    """A number other than 0 after ``factor`` is divided out at most ``at_most`` times, and how many times it was."""
    times = 0
    while times < at_most and number % factor == 0:
        number, times = number // factor, times + 1
    return number, times


def canonical_quantity(quantity: Quantity) -> str:
    """The quantity in canonical form, in the notation that it is written in: ``1`` of ``1000m``, ``1Gi`` of ``1024Mi``.
    Raises QuantityError."""
    return str(parse_amount(quantity))


def round_up_to_milli(quantity: Quantity) -> str:
    """The canonical form of the quantity, or of the next whole milli away from zero when it is finer. Raises
    QuantityError.

    Source: pkg/apis/core/v1/defaults.go SetDefaults_ResourceList.
    """
    amount = parse_amount(quantity)
    rounded = _ceil_to(abs(amount.value), _MILLI)
    return format_quantity(-rounded if amount.value < 0 else rounded, amount.notation)


def add(left: Amount, right: Amount) -> Amount:
    """Written as the first one that is not zero. Source: quantity.go, Add."""
    return Amount(left.value + right.value, (left if left.value else right).notation)


def larger(left: Amount, right: Amount) -> Amount:
    """The first of two that are equal."""
    return right if right.value > left.value else left


def in_units(amount: Fraction, divisor: Fraction) -> int:
    """How many of them, rounded up; no divisor is 1.

    Source: pkg/api/v1/resource/helpers.go, convertQuantityToString.
    """
    if amount <= 0 or divisor < 0:
        return 0
    return min(math.ceil(amount / (divisor or 1)), MAX_UNITS)
