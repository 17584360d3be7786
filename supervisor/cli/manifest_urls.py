"""A manifest that lies behind a URL."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Final

from supervisor.cli.options import Failure

TIMEOUT_S: Final = 30.0
"""How long nothing may come."""


def read_url(url: str, max_bytes: int) -> bytes:
    """At most one byte more than allowed, so that the caller sees what is too large. Raises Failure."""
    request = urllib.request.Request(url, headers={"Accept": "application/yaml, application/json, */*"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            content: bytes = answer.read(max_bytes + 1)
    except urllib.error.HTTPError as error:
        raise Failure(
            f"unable to read URL {url!r}, server reported {error.code} {error.reason}", prefix="error: "
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise Failure(f"unable to read URL {url!r}: {why}", prefix="error: ") from None
    return content
