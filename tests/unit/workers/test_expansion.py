"""References to variables in commands: the cases of upstream's expansion tests that tell forms apart."""

from __future__ import annotations

import pytest

from workers.config_error import ConfigError
from workers.expansion import expand, expand_sub_path_expr

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


def test_a_path_whose_variables_all_have_a_value() -> None:
    assert expand_sub_path_expr("logs/$(A)/$$(A)/$(C_1)", VALUES) == "logs/a/$(A)/c"
    assert expand_sub_path_expr("plain", {}) == "plain"


def test_a_path_names_what_has_no_value() -> None:
    with pytest.raises(ConfigError, match=r"^missing value for EMPTY, NONE$"):
        expand_sub_path_expr("$(NONE)/$(A)/$(EMPTY)/$(NONE)", VALUES)
