"""Known words that are like one that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

CUTOFF: Final = 0.6
"""How alike two words must be, from 0 to 1 (difflib)."""
MAX_SUGGESTIONS: Final = 3
MAX_WORD: Final = 64
"""Longer words are not compared: it takes the square of their lengths."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``: did you mean "pods"?``, to be put behind the sentence that names the word; empty when nothing is like it."""
    from difflib import get_close_matches

    if len(word) > MAX_WORD:
        return ""
    by_folded = {name.casefold().lstrip("-"): name for name in known}
    found = get_close_matches(word.casefold().lstrip("-"), by_folded, MAX_SUGGESTIONS, CUTOFF)
    names = " or ".join(f'"{by_folded[name]}"' for name in found)
    return f": did you mean {names}?" if found else ""
