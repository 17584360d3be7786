"""An httpGet hook: a GET to the container's pod, whose answer does not count.

Mirrors runHTTPHandler (pkg/kubelet/lifecycle/handlers.go): the hook fails when there is no answer, not by its status,
and a request by HTTPS that is answered in plain HTTP is repeated by HTTP. As of every hook, the answer is never logged
or sent: it may hold secrets.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.probe import HTTPGetAction
from ipc.link.messages import event_reasons
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from workers.kubecontainer.convert import pod_status, sandbox_behind
from workers.kubecontainer.label_signatures import Ownership
from workers.podhttp.endpoints import PortError, endpoint_of
from workers.podhttp.pod_network import Dialer, DialError, PodNetwork, pod_network
from workers.podhttp.request import RedirectError, request_of
from workers.podhttp.user_agents import HOOK_USER_AGENT
from workers.sync.run import SyncRun


class HttpHookFailed(Exception):
    """There was no answer. The message has nothing that the server has sent."""


class HttpHookClient(msgspec.Struct, frozen=True, kw_only=True):
    """Sends the GET of an httpGet hook to the network of the container's pod."""

    dialer: Dialer
    ownership: Ownership
    host_ips: Callable[[], tuple[str, ...]] = tuple
    """The host's addresses as they are now: those of pods in its network."""

    async def get(
        self, run: SyncRun, action: HTTPGetAction, container: str, container_id: str, timeout_s: float
    ) -> None:
        """Return when the server has answered, within ``timeout_s``, and once more so if it does not speak TLS.
        ``container`` is the hook's container by its name in the manifest.

        May be cancelled. Raises HttpHookFailed, RuntimeCallError, SyncEnded.
        """
        from workers.lifecycle.hook_request import in_plain_http, send
        from workers.podhttp.client import ExchangeFailed, NoHttp, NoTls  # brings h11, which few pods need

        network = await self._network(run, container_id)
        try:
            endpoint = endpoint_of(network, action.host, action.port, Container(name=container))
            request = request_of(action, endpoint, HOOK_USER_AGENT)
            try:
                await send(self.dialer, request, timeout_s)
            except NoTls:
                await send(self.dialer, in_plain_http(request), timeout_s)
                METERS.counter(metrics.HTTP_FALLBACKS).inc()
                answered = f"request to HTTPS lifecycle hook {endpoint.address} got HTTP response"
                await run.event(event_reasons.LIFECYCLE_HTTP_FALLBACK, f"{answered}, retry with HTTP succeeded")
        except NoHttp as error:
            raise HttpHookFailed("what was answered is no HTTP") from error
        except RedirectError as error:
            raise HttpHookFailed("it was redirected, and that cannot be followed") from error
        except (PortError, ExchangeFailed, DialError) as error:
            raise HttpHookFailed(str(error)) from error

    async def _network(self, run: SyncRun, container_id: str) -> PodNetwork:
        """The network of the container's sandbox, found by ids: what a list costs depends on what else is there. Raises
        RuntimeCallError, SyncEnded."""
        inspect = run.runtime.inspect_container
        container = await run.find(inspect, container_id)
        sandbox = await run.find(run.runtime.inspect_pod, container.pod_id) if container is not None else None
        if sandbox is None or not sandbox.infra_id or not self.ownership.owns_pod(sandbox):
            return pod_network(pod_status(run.pod.uid, (), (), 0.0))
        infra = await run.read(inspect, sandbox.infra_id)
        return pod_network(pod_status(run.pod.uid, [sandbox_behind(infra)], [infra], 0.0), self.host_ips())
