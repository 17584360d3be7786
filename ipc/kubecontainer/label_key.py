"""The key by which an agent knows its own labels: made once, kept in its state directory, given to its workers."""

from __future__ import annotations

from typing import Final

import msgspec

SECRET_BYTES: Final = 32


class LabelKey(msgspec.Struct, frozen=True, kw_only=True):
    """A secret, and since when everything of ours is signed with it. Its text form keeps the secret to itself."""

    secret: bytes
    made_at: float
    """Epoch seconds. Containers that are older carry no signature of this key."""

    def __repr__(self) -> str:
        return f"LabelKey(made_at={self.made_at!r})"
