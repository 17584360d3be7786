"""Kubernetes' quantity grammar and arithmetic."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.api import Quantity, QuantityError, parse_quantity
from ipc.api.quantity import MAX_EXPONENT, MAX_QUANTITY_CHARS, format_quantity, round_up_to_milli

GIB = 2**30
VALUES: list[tuple[Quantity, Fraction | int]] = [
    ("0", 0),
    ("-0", 0),
    ("007", 7),
    ("+5", 5),
    ("-5", -5),
    ("1.", 1),
    (".5", Fraction(1, 2)),
    ("-.5", Fraction(-1, 2)),
    ("1.5", Fraction(3, 2)),
    ("100n", Fraction(1, 10**7)),
    ("100u", Fraction(1, 10**4)),
    ("250m", Fraction(1, 4)),
    ("3k", 3000),
    ("4M", 4 * 10**6),
    ("5G", 5 * 10**9),
    ("6T", 6 * 10**12),
    ("7P", 7 * 10**15),
    ("8E", 8 * 10**18),
    ("1Ki", 1024),
    ("2Mi", 2 * 2**20),
    ("1.5Gi", GIB * 3 // 2),
    ("1Ti", 2**40),
    ("1Pi", 2**50),
    ("1Ei", 2**60),
    ("12e6", 12 * 10**6),
    ("12E6", 12 * 10**6),
    ("12e+6", 12 * 10**6),
    ("12e-3", Fraction(12, 1000)),
    ("1.5e3", 1500),
    ("  1Gi ", GIB),
    ("0.1n", Fraction(1, 10**9)),
    ("-0.1n", Fraction(-1, 10**9)),
    ("1.0000000001", Fraction(10**9 + 1, 10**9)),
    ("100Ei", 2**63 - 1),
    ("-100Ei", -(2**63 - 1)),
    ("100E", 100 * 10**18),
    (2, 2),
    (-2, -2),
    (0.5, Fraction(1, 2)),
    (0.1, Fraction(1, 10)),
    (1e22, 10**22),
    (1e-7, Fraction(1, 10**7)),
]
NO_QUANTITIES: list[Quantity] = [
    "",
    " ",
    ".",
    "+",
    "-",
    "k",
    "Ki",
    "e3",
    "1 Gi",
    "1K",
    "1g",
    "1mi",
    "1MI",
    "1KiB",
    "1e",
    "1e+",
    "1ee3",
    "1e3.5",
    "1e3m",
    "1.2.3",
    "--1",
    "0x10",
    "1_000",
    "\u0661",
    "one",
    "nan",
    float("nan"),
    float("inf"),
    f"1e{MAX_EXPONENT + 1}",
    "1e-99999999999",
    "1" * (MAX_QUANTITY_CHARS + 1),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_value(text: Quantity, value: Fraction | int) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", NO_QUANTITIES)
def test_no_quantity(text: Quantity) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


@given(st.integers(-(10**18), 10**18))
def test_format_and_parse_are_inverse(nanos: int) -> None:
    value = Fraction(nanos, 10**9)
    assert parse_quantity(format_quantity(value)) == value


@pytest.mark.parametrize(
    ("quantity", "rounded"),
    [("1m", "1m"), ("0.5m", "1m"), ("100u", "1m"), ("1.0001", "1001m"), ("-0.5m", "-1m"), ("1Gi", "1Gi"), (1.5, 1.5)],
)
def test_round_up_to_milli(quantity: Quantity, rounded: Quantity) -> None:
    assert round_up_to_milli(quantity) == rounded


@given(st.text(max_size=12))
def test_any_text_is_a_number_or_a_quantity_error(text: str) -> None:
    try:
        value = parse_quantity(text)
    except QuantityError:
        return
    assert isinstance(value, Fraction)
