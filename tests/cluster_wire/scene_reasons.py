"""Why a scene is told otherwise by this node than by a kubelet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tests.cluster_wire.reasons import REASONS
from tests.cluster_wire.scene_differences import SceneDifference


@dataclass(frozen=True)
class SceneReason:
    """A reason, and the differences that it is the reason of: all that is said must match."""

    text: str
    scene: str = ""
    """Regular expression, found in the title; empty: every scene."""
    what: str = ""
    """Regular expression, found in what differs."""
    kubelet: str = ""
    """Regular expression, found in a kubelet's values."""
    ours: str = ""
    same_end: bool = False
    """Only where steps were told together."""
    shown: str = ""
    """Words for all that differs, where naming each would say less."""
    varies: bool = False
    """Whether a difference is there depends on the moment, or on the host; the page says the reason once."""

    def holds_for(self, found: SceneDifference) -> bool:
        patterns = (self.scene, self.what, self.kubelet, self.ours)
        texts = (found.scene, found.what, found.kubelet, found.ours)
        matches = all(re.search(pattern, text) for pattern, text in zip(patterns, texts, strict=True))
        return matches and (found.same_end or not self.same_end)


def is_general(found: SceneDifference) -> bool:
    """Whether it is a difference of requests that has its reason in every scene."""
    return found.of_request is not None and any(one.holds_for(found.of_request) for one in REASONS)


def reason_of(found: SceneDifference) -> SceneReason | None:
    return next((reason for reason in SCENE_REASONS if reason.holds_for(found)), None)


_STATUS: Final = "^PATCH .*/pods/{name}/status "
_STEPS: Final = (
    "state$|ready$|started$|^phase|^condition (Ready|ContainersReady|Initialized|PodReadyToStart)|(^|: )resources$"
)
_OF_A_STATIC_POD: Final = "static-pod"

SCENE_REASONS: Final[tuple[SceneReason, ...]] = (
    # In every scene.
    SceneReason(
        "a kubelet reads the pod's cgroup, which without a limit has all memory that there can be and is gone at the "
        "end; here the resources of its containers are added up",
        what="^resources$",
        kubelet="memory: BYTES|→ {requests: {memory: 48Mi}}$",
        shown="`status.resources` of the pod",
    ),
    SceneReason(
        "the network of a rootless host has a condition of its own",
        what="^Node: condition NetworkUnavailable",
        kubelet="^-$",
        shown="condition `NetworkUnavailable` of the Node",
    ),
    SceneReason(
        "Ready without waiting for the CSINode: there are no drivers",
        what="^Node: condition Ready",
        kubelet="CSINode is not yet initialized",
        shown="condition `Ready` of the Node, false at every start",
    ),
    SceneReason(
        "of a start once, with a count; of a condition when it changes; what the host lacks is said as *Preflight*. A "
        "kubelet says every condition at every start, and what its cgroups and disks are",
        what="^events of the Node",
        shown="events of the Node",
    ),
    SceneReason(
        "the port has a certificate of its own; the recorded kubelet has asked for one at every start "
        "(`serverTLSBootstrap`)",
        "node-",
        "certificatesigningrequests request",
        kubelet="yes",
        shown="requests for a certificate of the port",
    ),
    SceneReason(
        "steps that follow each other closely are told together, by either of the two, or one by one",
        what=_STEPS,
        same_end=True,
        varies=True,
    ),
    SceneReason("which fields the patches of such steps have", what=_STATUS + "body: [.]status[.]", varies=True),
    SceneReason("whether the Node is read again", what="^GET /api/v1/nodes/{name} request", varies=True),
    SceneReason("whether an event was said again", what="/events(/{name})? ", varies=True),
    SceneReason("when the lease is renewed, or made anew", what="/leases(/{name})? request", varies=True),
    SceneReason("whether a pod is there that refers to a ConfigMap", "node-", "configmaps request", varies=True),
    SceneReason(
        "on a host whose cgroup controllers are not this user's a resize restarts its container",
        "pod-resize",
        "restartCount|^condition|last state|^events spec",
        ours="^- → 0 → 1 → 2|ContainersNotReady|resize requires restart|terminated",
        varies=True,
    ),
    SceneReason(
        "whether the attempt before the last was removed already",
        what="last state",
        ours="→ -$",
        varies=True,
    ),
    SceneReason(
        "connections are closed when the lease cannot be renewed twice: they may be dead",
        "node-deleted$",
        "^WATCH .* request",
        varies=True,
    ),
    # In single ones.
    SceneReason(
        "the reason follows from the phase that is told with it; a kubelet keeps that of a pod of which nothing ran",
        "pod-image-pull-fail|pod-config-error|pod-volume-missing",
        "^condition (Ready|ContainersReady)",
        ours="PodFailed$",
        shown="reason of `Ready` at the end",
    ),
    SceneReason(
        "the words are the runtime's",
        "pod-image-pull-fail",
        "^c: state|^events spec",
        ours="initializing source",
        shown="why the image was not pulled",
    ),
    SceneReason("another image of another size", "pod-image-pull-ok", "^events spec", ours="Image size", varies=True),
    SceneReason(
        "that its watch has ended is no event: the pod goes already",
        "pod-volume-missing",
        "^events of the Pod",
        kubelet="not registered",
        shown="a second `FailedMount`",
    ),
    SceneReason(
        "whether the back-off is said before the pod goes",
        "pod-liveness",
        "^events spec",
        kubelet="BackOff",
        varies=True,
    ),
    SceneReason(
        "a token is asked for each pod; the recorded kubelet's is not among the requests of this scene",
        "pod-image-pull-ok",
        "serviceaccounts/{name}/token",
        shown="token of its service account",
    ),
    SceneReason(
        "a file's resources are changed in place, as those of any other pod ([46](decisions/0046-resize.md)); a "
        "kubelet replaces the pod",
        _OF_A_STATIC_POD,
        "^events|restartCount|last state|PodResizeInProgress|^c: |order of requests|^condition",
        shown="edited resources",
    ),
    SceneReason(
        "a pod whose file is gone has succeeded or failed at the end; a kubelet deletes its mirror as it was",
        _OF_A_STATIC_POD,
        "^phase|^condition",
        shown="last phase",
    ),
    SceneReason(
        "said of every container that is stopped; the recording ends before",
        "token-refresh",
        "^events spec",
        ours="Killing",
        shown="event `Killing`",
    ),
    SceneReason(
        "a kubelet tries again to resize a pod that goes",
        "pod-resize-deferred",
        "^events of the Pod",
        kubelet='"generation":3',
        shown="a second `ResizeDeferred`",
    ),
    SceneReason(
        "`HEAD` is reviewed as `GET`", "authn-authz", "^review .*: no verb", kubelet="yes", shown="verb of a `HEAD`"
    ),
    SceneReason(
        "a kubelet has no such path any more and answers 404 without a review; here 404 comes after it",
        "authn-authz",
        "^review .*: get spec",
        shown="`/spec/`",
    ),
    SceneReason(
        "an evicted pod has failed with that reason, whatever its containers have made of the signal; a kubelet tells "
        "*Succeeded*, without a reason, of one whose containers end with 0",
        "node-pressure.*: web",
        "^(phase|reason|message|condition)",
        shown="phase, `reason` and `message` of an evicted pod whose container ended with 0",
    ),
    SceneReason(
        "a pod that is there when the agent begins anew is told once more by a kubelet",
        "node-pressure.*: badimg",
        "^events spec|state$",
        shown="its waiting container, told at the start",
    ),
    SceneReason(
        "the pod was made for the scene", "node-pressure.*: ", "observedGeneration|serviceaccounts", varies=True
    ),
)
