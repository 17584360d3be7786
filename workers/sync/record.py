"""Record of one sync: what it has found, done and failed to do, from which its answer is made."""

from __future__ import annotations

from ipc.host.clock import rfc3339
from ipc.k8s.api.pod_containers import container_type
from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.link.messages.pod_worker import SyncAction, SyncDone, SyncEffects, SyncPod, SyncResult
from ipc.link.messages.sync_error import SyncError
from ipc.link.metrics import kubelet as metrics
from ipc.link.metrics.reasons import OTHER, START_ERRORS
from ipc.link.shm.metric_cells import METERS
from workers.images.pull_backoff import PullBackoff
from workers.kubecontainer.look import Look, encode_look


class SyncEnded(Exception):
    """The sync ends here, before its last step."""

    def __init__(self, error: SyncError, message: str = "", *, cancelled: bool = False, retry_at: float = 0.0) -> None:
        """``retry_at``: wall time before which trying again is useless; 0.0 when unknown."""
        super().__init__(f"{error}: {message}")
        self.error = error
        self.message = message
        self.cancelled = cancelled
        self.retry_at = retry_at


class SyncRecord:
    """Collects the results of one sync; steps write to it, and none of them reads it but for `changed`.

    Mirrors PodSyncResult (pkg/kubelet/container/sync_result.go).
    """

    def __init__(self, request: SyncPod) -> None:
        self._request = request
        self._results: list[SyncResult] = []
        self._found = ""
        self._did: list[str] = []
        self._evicted = ""
        self.changed = False
        """The sync has changed something in the runtime, or tried to."""
        self._touched: dict[str, None] = {}
        self._removed: dict[str, None] = {}
        self._looks: dict[str, bytes] = {}
        self._unsure = False
        self._actuated: dict[str, ResourceRequirements] = {}
        self.pull_backoff = PullBackoff(request.uid, request.pull_failures)
        """Pulls of the pod's images that have failed, in this sync and in those before."""

    def found(self, words: str) -> None:
        """Begin the summary with what the sync acts on."""
        self._found = words

    def did(self, words: str) -> None:
        """Add an act to the summary."""
        self._did.append(words)

    def evicted(self, message: str) -> None:
        """The pod takes more than its limits allow; the message is its status'."""
        self._evicted = message
        self._did.append("to be evicted")

    def touched(self, id: str) -> None:
        """An act on that container (id or name) or sandbox (id) has succeeded."""
        self._touched[id] = None
        self._looks.pop(id, None)

    def looked(self, reference: str, look: Look) -> None:
        """A container that was touched, by that id or name, was seen after that, until it is touched again by it."""
        self._touched.pop(reference, None)
        self._looks[reference] = encode_look(look)

    def removed(self, id: str) -> None:
        """Podman has answered that the container, or the sandbox with everything in it, of that id was removed."""
        self._touched.pop(id, None)
        self._removed[id] = None

    def actuated(self, id: str, resources: ResourceRequirements) -> None:
        """A container or sandbox was given these resources while it ran."""
        self._actuated[id] = resources

    def actuated_of(self, id: str, made_with: ResourceRequirements) -> ResourceRequirements:
        """Resources that a container was given by syncs before this one."""
        return self._request.actuated.get(id, made_with)

    def may_have_touched(self) -> None:
        """An act has failed, and what became of it is not known."""
        self._unsure = True

    def succeeded(self, action: SyncAction, target: str) -> None:
        """Add the result of an action that has succeeded."""
        _count(self._request, action, target)
        self._results.append(SyncResult(action=action, target=target))

    def failed(self, action: SyncAction, target: str, error: SyncError, message: str, retry_at: float = 0.0) -> None:
        """Add the result of an action that has failed. ``retry_at`` in wall seconds."""
        _count(self._request, action, target, error)
        self._results.append(SyncResult(action=action, target=target, error=error, message=message, retry_at=retry_at))
        self._did.append(f"{target}: {error}")

    def done(self, now_wall: float, ended: SyncEnded | None = None) -> SyncDone:
        """The answer to the request. ``ended`` is why the sync ended before its last step, if it did."""
        return SyncDone(
            uid=self._request.uid,
            generation=self._request.generation,
            incarnation=self._request.incarnation,
            kind=self._request.kind,
            results=tuple(self._results),
            summary=self._summary(ended),
            error=ended.error if ended else SyncError.NONE,
            message=ended.message if ended else "",
            retry_at=ended.retry_at if ended else 0.0,
            changed=self.changed,
            effects=SyncEffects(tuple(self._touched), tuple(self._removed), tuple(self._looks.values()), self._unsure),
            cancelled=ended.cancelled if ended else False,
            pull_failures=self.pull_backoff.remembered(now_wall),
            evicted=self._evicted,
            actuated=dict(self._actuated),
        )

    def _summary(self, ended: SyncEnded | None) -> str:
        """Summary: observed state, acts, time of the next try."""
        nothing = "nothing to do" if ended is None else f"nothing could be done yet ({ended.error or 'cancelled'})"
        tries = [result.retry_at for result in self._results if result.retry_at]
        back = f"; next try at {rfc3339(min(tries))}" if tries else ""
        return f"found {self._found or 'nothing'}; {', '.join(self._did) or nothing}{back}"


def _count(request: SyncPod, action: SyncAction, target: str, error: SyncError = SyncError.NONE) -> None:
    """The starts of sandboxes and containers (pkg/kubelet/kuberuntime/kuberuntime_manager.go, SyncPod). A container
    that has to wait for its turn is not being started."""
    if request.pod is None or error is SyncError.CRASH_LOOP_BACK_OFF:
        return
    if action is SyncAction.CREATE_SANDBOX:
        counted = [(metrics.STARTED_PODS, metrics.STARTED_PODS_ERRORS)]
        if request.pod.spec.host_users is False:
            counted.append((metrics.STARTED_USER_NAMESPACED_PODS, metrics.STARTED_USER_NAMESPACED_PODS_ERRORS))
        for started, failed in counted:
            METERS.counter(started).inc()
            METERS.counter(failed).inc(1.0 if error else 0.0)
    elif action is SyncAction.START_CONTAINER:
        type = container_type(request.pod.spec, target)
        METERS.counter(metrics.STARTED_CONTAINERS, type).inc()
        if error:
            code = error if error in START_ERRORS else OTHER
            METERS.counter(metrics.STARTED_CONTAINERS_ERRORS, type, code).inc()
