"""YAML and KYAML as `rootlet` writes them, byte for byte as the real kubectl does."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
from collections.abc import Callable
from typing import Any, Final

import pytest

from supervisor.cli.printers.kyaml_document import as_kyaml
from supervisor.cli.printers.yaml_document import as_yaml
from tests.support.kubectl import DEADLINE_S, needs_new_kubectl

pytestmark = needs_new_kubectl

PIECES: Final = (
    *"ab:#-?0159 .'\"\\[{*&!|>%@`,~=+exTZ_\t\né",
    *(
        "yes",
        "null",
        "---",
        "0x1f",
        "0o17",
        "0b1",
        "1e3",
        "12:30",
        "2026-01-02",
        "T03:04:05Z",
        ".inf",
        "on",
        "N",
        "...",
    ),
    *("\n\n", " #", ": ", "\U0001f600"),
)
WITHOUT_TEXT_OF_ITS_OWN: Final = {"="}
"""PyYAML takes it for a default, so it is quoted here."""
VALUES: Final[tuple[Any, ...]] = (
    *({}, [], None, True, 0, -1, 1.5, 1e3, 12345678901),
    *([[1, [2]], {"a": ["x", {"b": None}]}], {"q": {"r": [{"s": 1, "t": ["\n"]}]}}, ["a\nb", [" c\n"]]),
)
KEYS: Final = (
    "a10",
    "a2",
    "a_b",
    "a-b",
    "aB",
    "B",
    "b",
    "k" * 128,
    "k" * 129,
    "two\nlines",
    "1e3",
    "y",
    "",
    "a: b",
    "é",
)


def kubectls(found: dict[str, Any], form: str = "yaml") -> str:
    """Document that kubectl prints of an object without asking a server."""
    command = ["kubectl", "annotate", "--local", "-f", "-", "a=b", "-o", form]
    done = subprocess.run(
        command, input=json.dumps(found), capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    return done.stdout


def an_object(data: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": "x", "annotations": {"a": "b"}}
    return {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": meta, "data": data}


DOCUMENTS = pytest.mark.parametrize(("form", "document"), [("yaml", as_yaml), ("kyaml", as_kyaml)])
Document = Callable[[dict[str, Any]], str]


@DOCUMENTS
def test_texts(form: str, document: Document) -> None:
    chosen = random.Random(1)
    made = ("".join(chosen.choices(PIECES, k=chosen.randint(1, 7))) for _ in range(4000))
    found = an_object({"texts": [text for text in (*PIECES, *made) if text not in WITHOUT_TEXT_OF_ITS_OWN]})
    assert document(found).splitlines() == kubectls(found, form).splitlines()


@DOCUMENTS
def test_keys_and_values(form: str, document: Document) -> None:
    pairs = zip(KEYS, itertools.cycle(VALUES), strict=False)
    found = an_object({**{f"value-{number}": value for number, value in enumerate(VALUES)}, **dict(pairs)})
    assert document(found).splitlines() == kubectls(found, form).splitlines()


def test_keys_of_kyaml() -> None:
    """Quoted where kubectl quotes them."""
    chosen = random.Random(2)
    made = ("".join(chosen.choices("abefinotxy019._-/+:", k=chosen.randint(1, 5))) for _ in range(4000))
    found = an_object(dict.fromkeys(made, 1))
    assert as_kyaml(found).splitlines() == kubectls(found, "kyaml").splitlines()
