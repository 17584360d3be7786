"""Parts that adapters share."""

from __future__ import annotations

Result = tuple[object, object]
"""Expected and got."""


class Later(Exception):
    """The case is about something that Rootlet does not have yet."""
