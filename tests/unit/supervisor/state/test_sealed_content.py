"""Sealed content: what opens it, and the words for what does not."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest

from supervisor.state.sealed_content import KEY_BYTES, NotOpened, Sealer

PLANTED = b"hunter2-planted"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "a.key"


def test_what_was_sealed_is_opened_in_another_life(key: Path) -> None:
    sealed = Sealer(key).seal("a.json", PLANTED)
    assert PLANTED not in sealed
    assert Sealer(key).open("a.json", sealed) == PLANTED
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert Sealer(key).seal("a.json", PLANTED) != sealed, "no nonce is used twice"


def damage(sealed: bytes) -> dict[str, tuple[str, bytes]]:
    """Names and contents that nobody has sealed so."""
    found = msgspec.json.decode(sealed)
    turned = {**found, "sealed": found["nonce"] + found["sealed"]}
    return {
        "another file's": ("b.json", sealed),
        "cut": ("a.json", sealed[:-9]),
        "empty": ("a.json", b""),
        "no UTF-8": ("a.json", b'{"version": 1, "nonce": "\xff"}'),
        "another version": ("a.json", msgspec.json.encode({**found, "version": 2})),
        "another nonce": ("a.json", msgspec.json.encode({**found, "nonce": "AAAA"})),
        "more in it": ("a.json", msgspec.json.encode(turned)),
        "plain": ("a.json", PLANTED),
    }


@pytest.mark.parametrize("how", damage(b'{"version":1,"nonce":"AAAAAAAAAAAAAAAA","sealed":"AAAA"}'))
def test_what_was_not_sealed_so_is_not_opened(key: Path, how: str) -> None:
    name, data = damage(Sealer(key).seal("a.json", PLANTED))[how]
    with pytest.raises(NotOpened, match=r"^is (damaged|of version)") as told:
        Sealer(key).open(name, data)
    assert PLANTED.decode() not in str(told.value)


def test_a_key_that_is_gone_is_named_and_not_made_by_a_look(key: Path) -> None:
    sealed = Sealer(key).seal("a.json", PLANTED)
    key.unlink()
    with pytest.raises(NotOpened, match=f"its key {key} is gone"):
        Sealer(key).open("a.json", sealed)
    assert not key.exists()


def test_a_damaged_key_is_moved_aside_for_the_next_that_is_sealed(key: Path) -> None:
    sealed = Sealer(key).seal("a.json", PLANTED)
    key.write_bytes(b"short")
    with pytest.raises(NotOpened, match="it has 5 bytes"):
        Sealer(key).open("a.json", sealed)
    again = Sealer(key).seal("a.json", PLANTED)
    assert key.with_name("a.key.refused").read_bytes() == b"short"
    assert len(key.read_bytes()) == KEY_BYTES
    assert Sealer(key).open("a.json", again) == PLANTED
    with pytest.raises(NotOpened, match="sealed with another key"):
        Sealer(key).open("a.json", sealed)
