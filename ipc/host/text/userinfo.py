"""URLs without user and password: those of a proxy or a registry may stand in what Podman says. Pure."""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r'[^\s"]+')
_DIGEST: Final = re.compile(r"sha[0-9]+:")


def without_userinfo(text: str) -> str:
    """The text, in which no URL has user and password.

    Both may hold ``@`` and ``/``, as somebody has typed them into a setting that no program can parse; the ``@`` before
    the digest of an image ends none.
    """
    return _WORD.sub(_cleaned, text) if "@" in text else text


def _cleaned(found: re.Match[str]) -> str:
    word = found[0]
    begin = word.find("//") + 2
    end = word.rfind("@")
    while end >= 0 and _DIGEST.match(word, end + 1):
        end = word.rfind("@", 0, end)
    return word[:begin] + word[end + 1 :] if 2 <= begin <= end else word
