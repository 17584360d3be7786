"""Texts without the values of Secrets."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import partial
from typing import Final
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ipc.host.text.gofmt import quoted
from ipc.k8s.api.v1.config_objects import Secret
from ipc.k8s.podobjects.redaction import (
    BLOCK_BYTES,
    INSTEAD,
    MAX_VALUES_BYTES,
    MIN_VALUE_CHARS,
    WITHHELD,
    blocks_of,
    known_by,
    redacted,
)
from tests.support.work import work_of

KNOWN = known_by(
    [
        Secret(data={"password": b"hunter22", "longer": b"hunter22-and-more", "short": b"abc", "empty": b""}),
        Secret(data={"lines": b'one "quoted"\nline\n', "binary": bytes(range(256))}),
    ]
)
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64, no padding": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 in lines": lambda text: base64.encodebytes(text.encode()).decode(),
    "quote": quote,
    "quote, all": lambda text: quote(text, safe=""),
    "quote_plus": quote_plus,
    "JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps(json.dumps(text, ensure_ascii=False)),
    "Go": quoted,
    "Go in JSON": lambda text: json.dumps(quoted(text)),
}
VALUES = st.text(st.characters(exclude_categories=["Cs"]), min_size=MIN_VALUE_CHARS, max_size=60)
AROUND = st.text('ab =+-\n"', max_size=20)
"""Not what begins an escape: whoever wants to hide a value from people can do so in any cipher."""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("crun: `hunter22`: not found", "crun: `<secret>`: not found"),
        ("hunter22-and-more and hunter22", "<secret> and <secret>"),
        ("abc is too short to be known by", "abc is too short to be known by"),
        (r'exec "one \"quoted\"\nline\n": no such file', 'exec "<secret>": no such file'),
        ('one "quoted"\nline', "<secret>"),
        (f"Basic {base64.b64encode(b'bob:hunter22').decode()}", "Basic Ym9iOm<secret>"),
        ("nothing of it", "nothing of it"),
        ("no Unicode \udcff", r"no Unicode \udcff"),
        ("", ""),
    ],
)
def test_values_are_replaced(text: str, told: str) -> None:
    assert redacted(text, KNOWN) == told


@pytest.mark.parametrize("form", FORMS)
@given(value=VALUES, before=AROUND, after=AROUND)
def test_no_form_of_a_value_is_left_in_any_context(form: str, value: str, before: str, after: str) -> None:
    assume(len(value.strip()) >= MIN_VALUE_CHARS and value not in INSTEAD)
    shown = FORMS[form](value)
    core = shown.strip('"\n=')
    assume(core and core not in before + after)
    told = redacted(before + shown + after, known_by([Secret(data={"key": value.encode()})]))
    assert told != before + shown + after
    assert core not in told.replace(INSTEAD, "")


@given(value=st.text("abcdef0123456789", min_size=MIN_VALUE_CHARS, max_size=200), cut=st.integers(1, 199))
def test_a_value_that_was_cut_in_two_leaves_nothing(value: str, cut: int) -> None:
    known = known_by([Secret(data={"key": value.encode()})])
    end, start = value[:cut], value[cut:]
    assert redacted(f"{'-' * 40}{end}", known, cut_end=True).replace(INSTEAD, "").strip("-") == ""
    assert redacted(f"{start}{'-' * 40}", known, cut_start=True).replace(INSTEAD, "").strip("-") == ""


def test_a_login_is_more_than_its_file() -> None:
    auth = base64.b64encode(b"bob:swordfish").decode()
    file = json.dumps({"auths": {"registry.example": {"auth": auth}, "other.example": {"password": "tr0ub4dor"}}})
    secret = Secret(type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": file.encode()})
    text = f"registry.example: bob: swordfish or tr0ub4dor denied: {auth}"
    told = redacted(text, known_by([secret]))
    assert told == "registry.example: bob: <secret> or <secret> denied: <secret>"


LONG: Final = "registry-of-the-team.eu-central-1.example.com:5000"


@pytest.mark.parametrize("before", range(BLOCK_BYTES))
@pytest.mark.parametrize(
    ("kind", "wrapped"),
    [("kubernetes.io/dockerconfigjson", '{"auths": %s}'), ("kubernetes.io/dockercfg", "%s")],
)
def test_the_registry_of_a_login_is_told_wherever_it_stands_in_the_file(kind: str, wrapped: str, before: int) -> None:
    """Otherwise nobody learns why a pull failed. What the file says beside it stays a secret."""
    auths = {"x" * before: {}, LONG: {"username": "robot-of-the-team", "password": "swordfish"}}
    file = wrapped % json.dumps(auths)
    known = known_by([Secret(type=kind, data={"file": file.encode()})])
    text = f'initializing source docker://{LONG}/app:1: Get "https://{LONG}/v2/": denied'
    assert redacted(text, known) == text
    assert "swordfish" not in redacted(file, known)
    assert "robot-of-the-team" not in redacted(file, known)


@pytest.mark.parametrize("auths", [{f"https://bob:{LONG}@x": {}}, {LONG: {"auth": LONG}}, {LONG: {"password": LONG}}])
def test_an_address_that_is_a_password_too_is_a_secret(auths: dict[str, dict[str, str]]) -> None:
    file = json.dumps({"auths": auths}).encode()
    known = known_by([Secret(type="kubernetes.io/dockerconfigjson", data={"file": file})])
    assert redacted(f"tried {LONG}.", known).count(LONG[:20]) == 0


def test_an_address_in_another_secret_is_a_secret() -> None:
    known = known_by([Secret(data={"where": LONG.encode()})])
    assert redacted(f"tried {LONG}.", known) == f"tried {INSTEAD}."


def test_what_is_not_known_is_withheld() -> None:
    assert known_by([Secret(data={"key": b"x" * (MAX_VALUES_BYTES + 1)})]) is None
    assert redacted("any text", None) == WITHHELD
    assert redacted("", None) == ""


def test_without_secrets_a_text_stays_as_it_is() -> None:
    assert redacted("any text", ()) == "any text"


def test_a_representation_says_nothing() -> None:
    assert "hunter" not in repr(KNOWN)


@pytest.mark.parametrize("piece", ["a", "%61", r"\x61", r"\\\\", "+", "\n", "ab"])
def test_the_work_is_linear_in_the_text(piece: str) -> None:
    """Values may be any: here every place of the text may be the beginning of blocks of every size."""
    values = {f"k{size}": b"a" * (size - 1) + b"b" for size in range(MIN_VALUE_CHARS, 3 * BLOCK_BYTES)}
    known = (blocks_of(Secret(data=values)),)
    few, many = (work_of(partial(redacted, piece * count, known)) for count in (500, 1000))
    assert many <= 2.1 * few
