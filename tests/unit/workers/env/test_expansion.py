"""References to variables in commands: the cases of upstream's expansion tests that tell forms apart."""

from __future__ import annotations

import pytest

from workers.env.expansion import MAX_EXPANSION_CHARS, MAX_PROCESS_CHARS, expand, expand_all, expand_sub_path_expr
from workers.kubecontainer.config_error import ConfigError

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
        ("$(A)$(A", "a$(A"),
        ("$(A)$$(A", "a$(A"),
        ("$(A$$$", "$(A$$"),
        ("$(A)$$$$x", "a$$x"),
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


def test_references_expand_to_no_more_than_a_process_can_be_given() -> None:
    half = {"A": "x" * (MAX_EXPANSION_CHARS // 2)}
    assert len(expand("$(A)$(A)", half)) == MAX_EXPANSION_CHARS
    with pytest.raises(ConfigError, match=rf"^the text: .* expand to more than {MAX_EXPANSION_CHARS} characters$"):
        expand("$$$(A)$(A)", half, "the text")
    with pytest.raises(ConfigError, match=r"^subPathExpr: "):
        expand_sub_path_expr("$(A)$(A)$(A)", half)


def test_all_words_together_are_no_longer_than_a_process_can_be_given() -> None:
    most = MAX_PROCESS_CHARS // MAX_EXPANSION_CHARS
    values = {"A": "x" * MAX_EXPANSION_CHARS}
    assert len(expand_all(["$(A)"] * most, values)) == most
    with pytest.raises(ConfigError, match=rf"^args: has more than {MAX_PROCESS_CHARS} characters"):
        expand_all(["$(A)"] * (most + 1), values, "args")
