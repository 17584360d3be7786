"""The grammar of field selectors: terms at commas, values with escapes (apimachinery pkg/fields, selector.go). Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TERM: Final = re.compile(r"(?:\\.|[^\\,])*\\?", re.DOTALL)
_OPERATOR: Final = re.compile(r"!=|==|=")
_VALUE: Final = re.compile(r"(?:\\[\\,=]|[^\\,=])*", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\([\\,=])")


class Term(NamedTuple):
    """One comparison, its value still escaped."""

    field: str
    operator: str
    value: str


def split_terms(text: str) -> list[str]:
    """Split a selector at every comma that is not escaped (splitTerms)."""
    if not text:
        return []
    terms: list[str] = []
    at = 0
    while True:
        found = _TERM.match(text, at)
        assert found is not None, "it matches nothing, too"
        terms.append(found[0])
        if found.end() >= len(text):
            return terms
        at = found.end() + 1


def split_term(text: str) -> Term | None:
    """Split a term at the first operator; None where there is none (splitTerm)."""
    found = _OPERATOR.search(text)
    return None if found is None else Term(text[: found.start()], found[0], text[found.end() :])


def unescaped(value: str) -> str:
    """A value as it is meant. Raises ValueError for an escape that is none, and for a mark that must be escaped
    (UnescapeValue)."""
    if _VALUE.fullmatch(value) is None:
        raise ValueError(f"invalid field selector: a value with an escape or a mark that is not one: {value!r:.80}")
    return _ESCAPED.sub(r"\1", value)
