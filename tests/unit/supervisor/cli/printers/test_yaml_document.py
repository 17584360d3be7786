"""YAML of our own, beside PyYAML's."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from supervisor.cli.printers.yaml_document import MAX_SIMPLE_KEY_CHARS, as_yaml


class Dumper(yaml.SafeDumper):
    """Go's choices where YAML leaves one."""

    def choose_scalar_style(self) -> str:
        style: str = super().choose_scalar_style()
        return '"' if style == "'" else style


def represent_str(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if text in ("y", "Y", "n", "N") else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


Dumper.add_representer(str, represent_str)


def by_pyyaml(value: Any) -> str:
    """Its end of a document that ends in empty lines is left out: nothing follows ours."""
    text: str = yaml.dump(
        value, Dumper=Dumper, sort_keys=True, allow_unicode=True, default_flow_style=False, width=2**31
    )
    return text.removesuffix("...\n")


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
ascii_keys = st.text("ab:#-?0159 .'\"\\[{*&!|>%@`,~=/", max_size=2 * MAX_SIMPLE_KEY_CHARS)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def documents(texts: st.SearchStrategy[str], keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | numbers | texts
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
    )


@given(st.dictionaries(ascii_keys, documents(ascii_text, ascii_keys), min_size=1, max_size=4))
def test_the_same_as_pyyaml_writes(value: dict[str, Any]) -> None:
    assert as_yaml(value) == by_pyyaml(value)


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
        ({"evil": "\x1b[2J\u202e"}, 'evil: "\\x1b[2J\\u202e"\n'),
        ({"k" * 128: [1, 2]}, f"? {'k' * 128}\n: - 1\n  - 2\n"),
    ],
)
def test_documents(value: dict[str, Any], written: str) -> None:
    assert as_yaml(value) == written
