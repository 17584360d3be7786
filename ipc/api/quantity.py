"""Resource quantities: `250m`, `1.5Gi`, `12e6`. Exact arithmetic, no floating point.

Source: apimachinery pkg/api/resource/quantity.go, ParseQuantity and the grammar in the comment of Quantity.
Differs on purpose: text that only the parser accepts and the grammar does not ("", ".", "k", "+") is refused, and so is
an exponent beyond MAX_EXPONENT.
"""

import re
from fractions import Fraction
from typing import Final

from ipc.api.base import Quantity

MAX_QUANTITY_CHARS: Final = 64
"""Longest quantity accepted, in characters."""
MAX_EXPONENT: Final = 64
"""Largest magnitude of a decimal exponent; 2**63-1, the largest amount Kubernetes promises to carry, needs 19."""
MAX_BINARY_VALUE: Final = 2**63 - 1
"""Amounts with a binary suffix are capped here, as upstream does."""

_PATTERN: Final = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d+))?", re.ASCII)
_BINARY_EXPONENTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_EXPONENTS: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NANO: Final = 10**9


class QuantityError(ValueError):
    """The text is no quantity."""


def parse_quantity(quantity: Quantity) -> Fraction:
    """The value of a quantity, rounded away from zero to whole nanos. Raises QuantityError."""
    text = quantity.strip() if isinstance(quantity, str) else repr(quantity)
    match = _PATTERN.fullmatch(text) if len(text) <= MAX_QUANTITY_CHARS else None
    if match is None:
        raise QuantityError("must be a number with an optional suffix such as m, k, M, Ki, Mi or e3")
    sign, number, binary, decimal, exponent = match.groups()
    magnitude = Fraction(number) * _scale(binary, decimal, exponent)
    if binary:
        magnitude = min(magnitude, Fraction(MAX_BINARY_VALUE))
    rounded = _ceil_to(magnitude, _NANO)
    return -rounded if sign == "-" else rounded


def _scale(binary: str | None, decimal: str | None, exponent: str | None) -> Fraction:
    if binary:
        return Fraction(2 ** _BINARY_EXPONENTS[binary])
    power = _DECIMAL_EXPONENTS[decimal] if decimal else int(exponent or 0)
    if abs(power) > MAX_EXPONENT:
        raise QuantityError(f"exponent must be between -{MAX_EXPONENT} and {MAX_EXPONENT}")
    return Fraction(10) ** power


def _ceil_to(value: Fraction, parts: int) -> Fraction:
    return Fraction(-(-value.numerator * parts // value.denominator), parts)


def format_quantity(value: Fraction) -> str:
    """The shortest of n, u, m and no suffix that shows the value (whole nanos) exactly."""
    for suffix, parts in (("", 1), ("m", 10**3), ("u", 10**6)):
        if (value * parts).denominator == 1:
            return f"{value * parts}{suffix}"
    return f"{_ceil_to(value, _NANO) * _NANO}n"


def round_up_to_milli(quantity: Quantity) -> Quantity:
    """The quantity itself, or the next whole milli away from zero when it is finer. Raises QuantityError.

    Source: pkg/apis/core/v1/defaults.go SetDefaults_ResourceList.
    """
    value = parse_quantity(quantity)
    milli = 10**3
    if (value * milli).denominator == 1:
        return quantity
    rounded = _ceil_to(abs(value), milli)
    return format_quantity(-rounded if value < 0 else rounded)
