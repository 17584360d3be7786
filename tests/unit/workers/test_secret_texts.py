"""Texts without the values of Secrets."""

from __future__ import annotations

import pytest

from ipc.api import Secret
from ipc.config_objects import ConfigObjects
from workers.secret_texts import without_secrets

SECRETS = ConfigObjects(
    secrets={
        "a": Secret(data={"password": b"hunter22", "longer": b"hunter22-and-more", "short": b"abc", "empty": b""}),
        "b": Secret(data={"lines": b'one "quoted"\nline\n', "binary": b"\xff\xfe\xfd\xfc"}),
    }
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("crun: `hunter22`: not found", "crun: `<secret>`: not found"),
        ("hunter22-and-more and hunter22", "<secret> and <secret>"),
        ("abc is too short to be known by", "abc is too short to be known by"),
        (r'exec "one \"quoted\"\nline\n": no such file', 'exec "<secret>": no such file'),
        ('one "quoted"\nline', "<secret>"),
        ("nothing of it", "nothing of it"),
        ("", ""),
    ],
)
def test_values_are_replaced(text: str, told: str) -> None:
    assert without_secrets(text, SECRETS) == told


def test_without_secrets_a_text_stays_as_it_is() -> None:
    assert without_secrets("any text", ConfigObjects()) == "any text"
