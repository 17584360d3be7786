"""Objects as YAML: whatever is in them reads back, and steers no terminal."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from supervisor.cli.printers.yaml_document import as_yaml

WORDS = (
    "yes",
    "Null",
    "NO",
    "~",
    "<<",
    "=",
    "---",
    "1e5",
    "0x1f",
    "1_000",
    "1.5",
    "12:30:45",
    "2026-01-01",
    ".inf",
    "089",
)
ascii_text = st.text("ab:#-?0159 .'\"\\[{*&!|>%@`,~=+exTZ_\t\n") | st.sampled_from(WORDS)
ascii_keys = st.text("ab:#-?0159 .'\"\\[{*&!|>%@`,~=/", max_size=200)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def documents(texts: st.SearchStrategy[str], keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | numbers | texts
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
    )


@given(st.dictionaries(ascii_keys, documents(ascii_text, ascii_keys), min_size=1, max_size=4))
def test_what_is_written_reads_back(value: dict[str, Any]) -> None:
    written = as_yaml(value)
    assert yaml.safe_load(written) == value
    assert not written.endswith("...\n")


@given(st.dictionaries(st.text(max_size=200), documents(st.text(), st.text(max_size=200)), min_size=1, max_size=4))
def test_any_text_reads_back_and_steers_no_terminal(value: dict[str, Any]) -> None:
    written = as_yaml(value)
    assert yaml.safe_load(written) == value
    assert all(char.isprintable() or char == "\n" or char.isspace() for char in written)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (
            {"a": {}, "b": [], "c": [{"d": 1, "e": [True, None]}]},
            "a: {}\nb: []\nc:\n- d: 1\n  e:\n  - true\n  - null\n",
        ),
        ({"run": "one\n\n  two\n"}, "run: |\n  one\n\n    two\n"),
        ({"run": " one\ntwo"}, "run: |2-\n   one\n  two\n"),
        ({"port": "80", "when": "2026-01-01T00:00:00Z"}, 'port: "80"\nwhen: "2026-01-01T00:00:00Z"\n'),
        ({"evil": "\x1b[2J\u202e"}, 'evil: "\\e[2J\\u202E"\n'),
        ({"message": "unready: [x]", "y": "n"}, 'message: \'unready: [x]\'\n"y": "n"\n'),
        ({"half": "\ud800"}, "half: '?'\n"),
    ],
)
def test_documents(value: dict[str, Any], written: str) -> None:
    assert as_yaml(value) == written
