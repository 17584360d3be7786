"""Objects as YAML: whatever is in them reads back, and steers no terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ipc.host.text.safe_text import safe_text
from supervisor.cli.printers.yaml_document import as_yaml

WORDS = (
    "",
    "yes",
    "y",
    "Off",
    "+.INF",
    "0o7",
    "0x_",
    "1e3",
    "+1_0",
    "2026-99-99",
    "2026-1-2 3:4:5.6 +07",
    "- ",
    ": ",
    " #",
    "?",
    "\n",
    " \n ",
    "\x00",
    "\x85",
    "\u2028",
    "\ufeffbom",
    "\ud800",
    "\U0001f600",
    "long " * 2000,
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
SCRIPTS = 'empty: |2+\n\nend: "a \\nb"\nmore: |+\n  a\n\nscript: "a\\tb\\nc"\n'
KEYS = "B: 1\na_b: 1\na2: 1\na02: 1\na10: 1\naB: 1\nb: 1\n"
ascii_text = st.text("ab:#-?0159 .'\"\\[{*&!|>%@`,~=+exTZ_\t\n") | st.sampled_from(WORDS)
ascii_keys = st.text("ab:#-?0159 .'\"\\[{*&!|>%@`,~=/", max_size=200)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def documents(texts: st.SearchStrategy[str], keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | numbers | texts
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
    )


any_text = ascii_text | st.text() | st.sampled_from(WORDS) | st.lists(st.sampled_from(WORDS)).map("".join)


@given(documents(any_text, ascii_keys | st.text(max_size=200) | st.sampled_from(WORDS)))
def test_any_text_reads_back_and_steers_no_terminal(value: Any) -> None:
    written = as_yaml(value)
    for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        assert yaml.load(written, Loader=loader) == without_halves(value)
    assert safe_text(written) == written


def without_halves(value: Any) -> Any:
    """A value as it can be written: half of a surrogate pair becomes a question mark."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


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
        ({"half": "\ud800"}, 'half: "?"\n'),
        ({"a\tb": "ü", "face": "\U0001f600\x7f"}, '"a\\tb": ü\nface: "\\U0001F600\\x7F"\n'),
        ({"k" * 129: {"a": ["b\nc"]}}, f"? {'k' * 129}\n: a:\n  - |-\n    b\n    c\n"),
        ({"two\nlines": [1e3, 1e21, 1.5]}, "? |-\n  two\n  lines\n: - 1000\n  - 1.0e+21\n  - 1.5\n"),
        ({"a": [[1, [2]], []]}, "a:\n- - 1\n  - - 2\n- []\n"),
        ({"script": "a\tb\nc", "end": "a \nb", "empty": "\n", "more": "a\n\n"}, SCRIPTS),
        ({"a10": 1, "a2": 1, "a02": 1, "aB": 1, "a_b": 1, "b": 1, "B": 1}, KEYS),
    ],
)
def test_documents(value: dict[str, Any], written: str) -> None:
    assert as_yaml(value) == written


@pytest.mark.parametrize("value", [1, None, "a\nb", "", [], {}, ["x"]])
def test_any_value_is_a_document(value: Any) -> None:
    assert yaml.safe_load(as_yaml(value)) == value
