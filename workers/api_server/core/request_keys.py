"""Keys of what a filter leaves in a request for those behind it."""

from __future__ import annotations

from typing import Final

from aiohttp import web

USER: Final = web.RequestKey("user", str)
"""Name of the user who was authenticated, for the request log."""
ANSWERED: Final = web.RequestKey("answered", web.StreamResponse)
"""The answer, once its first bytes are about to be sent."""
TOLD_TO_GO_ON: Final = web.RequestKey("told_to_go_on", bool)
"""Whether the client was told to send the body that it waits with."""
