"""An HTTP probe: does a GET get a good status."""

from __future__ import annotations

from typing import Final

from ipc.host.text.gofmt import head, quoted
from ipc.k8s.api.v1.probe import HTTPGetAction
from ipc.link.eventloop.loop_clock import loop_time
from workers.podhttp import client
from workers.podhttp.client import MAX_REQUESTS, TOO_MANY_REDIRECTS, BodyBroken, ExchangeFailed, exchange, following
from workers.podhttp.endpoints import endpoint_of
from workers.podhttp.pod_network import Dialer
from workers.podhttp.request import HttpRequest, RedirectError, request_of
from workers.podhttp.user_agents import PROBE_USER_AGENT
from workers.prober.outcome import MAX_OUTPUT_BYTES, Answer, ProbeError, ProbeOutcome, ProbeTarget

_SUCCESS: Final = range(200, 400)
_TERMINATED_REDIRECT: Final = range(300, 400)


async def probe_http(action: HTTPGetAction, target: ProbeTarget, timeout_s: int, dialer: Dialer) -> ProbeOutcome:
    """Mirrors DoHTTPProbe (pkg/probe/http/http.go). Raises PortError, DialError, ProbeError.

    As there, an answer that breaks off in its body is an error of the probe and says nothing about the container.
    HTTP/2 is not offered over TLS, where Go's client does.
    """
    endpoint = endpoint_of(target.network, action.host, action.port, target.container)
    deadline = loop_time() + timeout_s
    request = request_of(action, endpoint, PROBE_USER_AGENT)
    for _ in range(MAX_REQUESTS):
        try:
            async with exchange(request, dialer, deadline) as answer:
                onward = following(request, answer)
                if onward is None:
                    return await _outcome(answer)
        except (ExchangeFailed, RedirectError) as failed:
            return _failure(request, str(failed))
        except BodyBroken as broken:
            raise ProbeError(str(broken)) from broken
        request = onward
    return _failure(request, TOO_MANY_REDIRECTS)


def _failure(request: HttpRequest, text: str) -> ProbeOutcome:
    return ProbeOutcome(Answer.FAILURE, f"Get {quoted(request.url)}: {text}")


async def _outcome(answer: client.Answer) -> ProbeOutcome:
    """Raises BodyBroken."""
    body = head(await answer.body(MAX_OUTPUT_BYTES))
    if answer.status not in _SUCCESS:
        # Never with the body, which may hold secrets: whoever sees events sees it.
        return ProbeOutcome(Answer.FAILURE, f"HTTP probe failed with statuscode: {answer.status}")
    if answer.status in _TERMINATED_REDIRECT:
        return ProbeOutcome(Answer.WARNING, f"Probe terminated redirects, Response body: {body}")
    return ProbeOutcome(Answer.SUCCESS, body)
