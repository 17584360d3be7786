"""An httpGet hook: a GET to the container's pod, whose answer nobody reads.

Mirrors runHTTPHandler (pkg/kubelet/lifecycle/handlers.go): only that there is no answer is a failure, not its status,
and a server that is asked by HTTPS and answers in plain HTTP is asked again by HTTP. As of every hook, what is answered
is never told: it may hold secrets.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from ipc.api.v1.container import Container
from ipc.api.v1.probe import HTTPGetAction
from workers.kubecontainer.convert import pod_status
from workers.kubecontainer.labels import read_sandbox
from workers.podhttp.client import (
    MAX_REQUESTS,
    TOO_MANY_REDIRECTS,
    BodyBroken,
    ExchangeFailed,
    NoHttp,
    NoTls,
    exchange,
    following,
)
from workers.podhttp.endpoints import PortError, endpoint_of
from workers.podhttp.pod_network import DialError, DialTimeout, PodNetwork, pod_network
from workers.podhttp.request import HttpRequest, RedirectError, request_of
from workers.podhttp.user_agents import HOOK_USER_AGENT
from workers.prober.outcome import MAX_OUTPUT_BYTES
from workers.sync.context import WARNING, SyncRun

FALLBACK_REASON: Final = "LifecycleHTTPFallback"


class HttpHookFailed(Exception):
    """There was no answer. The message has nothing in it that the server has said."""


async def run_http_hook(run: SyncRun, action: HTTPGetAction, container: str, timeout_s: float) -> None:
    """Return when the server has answered, within ``timeout_s``, and once more so if it does not speak TLS.

    May be cancelled. Raises HttpHookFailed, RuntimeCallError, SyncEnded.
    """
    network = await _network(run)
    try:
        endpoint = endpoint_of(network, action.host, action.port, Container(name=container))
        request = request_of(action, endpoint, HOOK_USER_AGENT)
        try:
            await _get(run, request, timeout_s)
        except NoTls:
            await _get(run, _in_plain_http(request), timeout_s)
            text = f"request to HTTPS lifecycle hook {endpoint.address} got HTTP response, retry with HTTP succeeded"
            await run.event(WARNING, FALLBACK_REASON, text)
    except NoHttp as error:
        raise HttpHookFailed("what was answered is no HTTP") from error
    except RedirectError as error:
        raise HttpHookFailed("it was redirected, and that cannot be followed") from error
    except (PortError, ExchangeFailed, DialError) as error:
        raise HttpHookFailed(str(error)) from error


async def _network(run: SyncRun) -> PodNetwork:
    """Looked up now: this sync may have made the sandbox. Raises RuntimeCallError, SyncEnded."""
    listed = await run.read(run.runtime.list_pods, run.pod.uid)
    sandboxes = filter(run.context.ownership.owns_pod, listed)
    newest = max(sandboxes, key=lambda pod: read_sandbox(pod.labels).attempt, default=None)
    if newest is None or not newest.infra_id:
        return pod_network(pod_status(run.pod.uid, (), (), 0.0))
    infra = await run.read(run.runtime.inspect_container, newest.infra_id)
    return pod_network(pod_status(run.pod.uid, [newest], [infra], 0.0), run.context.host_ips())


async def _get(run: SyncRun, request: HttpRequest, timeout_s: float) -> None:
    """Follow the answers to the last one. Raises ExchangeFailed, RedirectError, DialError."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    for _ in range(MAX_REQUESTS):
        onward = await _get_once(run, request, deadline)
        if onward is None:
            return
        request = onward
    raise ExchangeFailed(TOO_MANY_REDIRECTS)


async def _get_once(run: SyncRun, request: HttpRequest, deadline: float) -> HttpRequest | None:
    """The request that follows. Raises as `_get`."""
    while True:
        try:
            async with exchange(request, run.context.dialer, deadline) as answer:
                onward = following(request, answer)
                if onward is None:
                    await answer.body(MAX_OUTPUT_BYTES)
                return onward
        except BodyBroken:
            return None  # it has answered
        except DialTimeout:
            continue  # no container is to blame that the dialer is away; whoever waits for the hook may give it up


def _in_plain_http(request: HttpRequest) -> HttpRequest:
    """Without what was meant for nobody else to read."""
    headers = tuple((name, value) for name, value in request.headers if name.lower() != "authorization")
    return msgspec.structs.replace(request, tls=False, headers=headers)
