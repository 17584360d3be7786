"""Media type of a request's or an answer's body. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import hdrs


def media_type(headers: Mapping[str, str]) -> str:
    """Media type without parameters; empty where none is said. aiohttp's own imports the package email (1.5 MiB)."""
    return headers.get(hdrs.CONTENT_TYPE, "").partition(";")[0].strip().lower()
