"""YAML as `rootlet` writes it, byte for byte as the real kubectl does."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
from typing import Any, Final

from supervisor.cli.printers.yaml_document import as_yaml
from tests.harness.kubectl import DEADLINE_S, needs_new_kubectl

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


def kubectls(found: dict[str, Any]) -> str:
    """YAML that kubectl prints of an object without asking a server."""
    command = ["kubectl", "annotate", "--local", "-f", "-", "a=b", "-o", "yaml"]
    done = subprocess.run(
        command, input=json.dumps(found), capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    return done.stdout


def an_object(data: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": "x", "annotations": {"a": "b"}}
    return {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": meta, "data": data}


def test_texts() -> None:
    chosen = random.Random(1)
    made = ("".join(chosen.choices(PIECES, k=chosen.randint(1, 7))) for _ in range(4000))
    found = an_object({"texts": [text for text in (*PIECES, *made) if text not in WITHOUT_TEXT_OF_ITS_OWN]})
    assert as_yaml(found).splitlines() == kubectls(found).splitlines()


def test_keys_and_values() -> None:
    pairs = zip(KEYS, itertools.cycle(VALUES), strict=False)
    found = an_object({**{f"value-{number}": value for number, value in enumerate(VALUES)}, **dict(pairs)})
    assert as_yaml(found).splitlines() == kubectls(found).splitlines()
