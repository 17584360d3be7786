"""The request of an httpGet hook on its way: redirects, deadlines, and answers that do not count."""

from __future__ import annotations

import msgspec

from ipc.link.eventloop.loop_clock import loop_time
from workers.podhttp.client import (
    MAX_REQUESTS,
    TOO_MANY_REDIRECTS,
    BodyBroken,
    ExchangeFailed,
    exchange,
    following,
)
from workers.podhttp.pod_network import Dialer, DialTimeout
from workers.podhttp.request import HttpRequest
from workers.prober.outcome import MAX_OUTPUT_BYTES


async def send(dialer: Dialer, request: HttpRequest, timeout_s: float) -> None:
    """Send it, and follow the answers to the last one. Raises ExchangeFailed, RedirectError, DialError."""
    deadline = loop_time() + timeout_s
    for _ in range(MAX_REQUESTS):
        onward = await _send_once(dialer, request, deadline)
        if onward is None:
            return
        request = onward
    raise ExchangeFailed(TOO_MANY_REDIRECTS)


async def _send_once(dialer: Dialer, request: HttpRequest, deadline: float) -> HttpRequest | None:
    """The request that follows. Raises as `send`."""
    while True:
        try:
            async with exchange(request, dialer, deadline) as answer:
                onward = following(request, answer)
                if onward is None:
                    await answer.body(MAX_OUTPUT_BYTES)
                return onward
        except BodyBroken:
            return None  # it has answered
        except DialTimeout:
            continue  # the dialer is away, which is no failure of the hook; its caller may cancel it


def in_plain_http(request: HttpRequest) -> HttpRequest:
    """The same request in plain HTTP, without credentials."""
    headers = tuple((name, value) for name, value in request.headers if name.lower() != "authorization")
    return msgspec.structs.replace(request, tls=False, headers=headers)
