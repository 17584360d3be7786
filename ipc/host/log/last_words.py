"""A failure that lasts is one line of the log, however often it is found again."""

from __future__ import annotations


class LastWords:
    """Words that were said last about one thing, by one who looks again and again. Empty ones say that all is well."""

    def __init__(self) -> None:
        self._words = ""

    def are_new(self, words: str) -> bool:
        """Whether these are to be said: they are not the last ones. From now on they are."""
        before, self._words = self._words, words
        return bool(words) and words != before

    def forget(self) -> None:
        """All is well: the same words are news when they come again."""
        self._words = ""
