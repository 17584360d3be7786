"""Kubernetes' quantity grammar and arithmetic."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.api.quantity import (
    MAX_EXPONENT,
    MAX_QUANTITY_CHARS,
    Notation,
    QuantityError,
    add,
    canonical_quantity,
    format_quantity,
    larger,
    parse_amount,
    parse_quantity,
    round_up_to_milli,
)
from ipc.k8s.api.v1.base import Quantity

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


CANONICAL: list[tuple[Quantity, str]] = [
    ("0", "0"),
    ("0Gi", "0"),
    ("0e3", "0"),
    ("-0m", "0"),
    ("1", "1"),
    ("+5", "5"),
    ("007", "7"),
    ("1000", "1k"),
    ("1024", "1024"),
    ("1500000", "1500k"),
    ("1000000000000000000", "1E"),
    ("1000E", "1000E"),
    ("1.5", "1500m"),
    ("1.500", "1500m"),
    ("0.5", "500m"),
    ("1000m", "1"),
    ("100u", "100u"),
    ("1000n", "1u"),
    ("0.1n", "1n"),
    ("-1.5", "-1500m"),
    ("1.5k", "1500"),
    ("1Ki", "1Ki"),
    ("1024Ki", "1Mi"),
    ("1.5Gi", "1536Mi"),
    ("1025Ki", "1025Ki"),
    ("0.5Ki", "512"),
    ("1000Ki", "1000Ki"),
    ("1.1Ki", "1126400m"),
    ("-1Mi", "-1Mi"),
    ("100Ei", "9223372036854775807"),
    ("12e6", "12e6"),
    ("12E6", "12e6"),
    ("12e5", "1200e3"),
    ("1e0", "1"),
    ("1e-3", "1e-3"),
    ("1.5e3", "1500"),
    ("1e21", "1e21"),
    (2, "2"),
    (2000, "2k"),
    (0.5, "500m"),
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_canonical_form(text: Quantity, canonical: str) -> None:
    assert str(parse_amount(text)) == canonical


nanos_and_notation = st.tuples(st.integers(-(10**28), 10**28), st.sampled_from(Notation))


@given(nanos_and_notation)
def test_format_and_parse_are_inverse(amount: tuple[int, Notation]) -> None:
    value, notation = Fraction(amount[0], 10**9), amount[1]
    text = format_quantity(value, notation)
    if notation is not Notation.BINARY or abs(value) < 2**63:
        assert parse_quantity(text) == value


@given(nanos_and_notation)
def test_a_canonical_form_is_its_own(amount: tuple[int, Notation]) -> None:
    """Texts have no digit after a point, and nothing that a larger suffix would take. A binary amount that
    has no suffix is read as a decimal one, as upstream."""
    text = format_quantity(Fraction(amount[0], 10**9), amount[1])
    assert "." not in text
    read = parse_amount(text) if abs(amount[0]) < 10**9 * 2**63 else None
    if read is not None and read.notation is amount[1]:
        assert str(read) == text


signed = st.builds(
    "{}{}".format,
    st.sampled_from(["", "+", "-"]),
    st.from_regex(r"([0-9]{1,6}(\.[0-9]{0,12})?|\.[0-9]{1,12})", fullmatch=True),
)
suffixes = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e-9", "e3", "E6", "e+12"])


@given(signed, suffixes)
def test_nothing_is_lost_but_below_a_nano(number: str, suffix: str) -> None:
    factor = parse_quantity(f"1{suffix}")
    exact, read = Fraction(number) * factor, parse_quantity(number + suffix)
    assert abs(read) >= abs(exact)
    assert abs(read - exact) < Fraction(1, 10**9)
    assert (read * 10**9).denominator == 1
    assert parse_quantity(str(parse_amount(number + suffix))) == read


def test_a_sum_is_written_as_its_first_summand() -> None:
    assert str(add(parse_amount("1Gi"), parse_amount("1M"))) == "1074741824"
    assert str(add(parse_amount("1Gi"), parse_amount("1024"))) == "1048577Ki"
    assert str(add(parse_amount("0"), parse_amount("1Gi"))) == "1Gi"
    assert str(larger(parse_amount("1024"), parse_amount("1Ki"))) == "1024"
    assert str(larger(parse_amount("1"), parse_amount("1Ki"))) == "1Ki"


@pytest.mark.parametrize(
    ("quantity", "rounded"),
    [
        ("1m", "1m"),
        ("0.5m", "1m"),
        ("100u", "1m"),
        ("1.0001", "1001m"),
        ("-0.5m", "-1m"),
        ("1024Mi", "1Gi"),
        (1.5, "1500m"),
    ],
)
def test_round_up_to_milli(quantity: Quantity, rounded: str) -> None:
    assert round_up_to_milli(quantity) == rounded


@pytest.mark.parametrize(
    ("quantity", "canonical"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        (1, "1"),
        (0.5, "500m"),
        ("1024Mi", "1Gi"),
        ("0.5Gi", "512Mi"),
        ("0.1Ki", "102400m"),
        ("1000000", "1M"),
        ("1000Ki", "1000Ki"),
        ("100e1", "1e3"),
        ("0E", "0"),
        ("-1.5", "-1500m"),
    ],
)
def test_a_canonical_quantity_is_a_text_that_stays(quantity: Quantity, canonical: str) -> None:
    assert canonical_quantity(quantity) == canonical
    assert canonical_quantity(canonical) == canonical


def test_an_amount_whose_canonical_form_nobody_would_take_is_refused() -> None:
    digits = "1" * (MAX_QUANTITY_CHARS - 2)
    assert canonical_quantity(digits) == digits
    with pytest.raises(QuantityError):
        canonical_quantity(f"{digits}.1")


@given(st.text(max_size=12))
def test_any_text_is_a_number_or_a_quantity_error(text: str) -> None:
    try:
        value = parse_quantity(text)
    except QuantityError:
        return
    assert isinstance(value, Fraction)
