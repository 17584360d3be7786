"""References to variables in commands: the cases of upstream's expansion tests that tell forms apart."""

from __future__ import annotations

import pytest

from workers.expansion import expand

VALUES = {"A": "a", "B": "$(A)", "EMPTY": "", "C_1": "c", "d.e": "de"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "a"),
        ("x$(A)y$(A)", "xaya"),
        ("$(B)", "$(A)"),
        ("$(EMPTY)|", "|"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$a"),
        ("$$$$(A)", "$$(A)"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
        ("$(A$(A)", "$(A$(A)"),
        ("$(A$(A))", "$(A$(A))"),
        ("$(C_1) $(d.e)", "c de"),
        ("$()", "$()"),
        ("$((A))", "$((A))"),
        ("$", "$"),
        ("$$", "$"),
    ],
)
def test_expand(text: str, expanded: str) -> None:
    assert expand(text, VALUES) == expanded
