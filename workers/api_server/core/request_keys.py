"""Keys of what a filter leaves in a request for those behind it."""

from __future__ import annotations

from typing import Final

from aiohttp import web

USER: Final = web.RequestKey("user", str)
"""Name of the user who was authenticated, for the request log."""
