"""One module and one tagged union each way per link: everything that crosses a process boundary as a message.

Which message answers which:

=====================  ==========================================================================
``Spawn``              ``Spawned``, and one day ``Exited``; or ``NotBorn``
``SyncPod``            exactly one ``SyncDone`` with the same uid, generation and incarnation,
                       unless the worker dies first; any number of ``EventReport`` before it
``CancelSync``         nothing of its own: the sync it names ends early with its ``SyncDone``
``Observe``            ``Observed`` that contains every uid asked for, observed after the request
``Relist``             ``Relisted``
``PullImage``          exactly one ``PullEnded`` for that reference, after any number of ``PullProgress``,
                       unless ``AbandonPull`` or the death of the worker that asked comes first
``ProbePod``           any number of ``ProbeVerdict`` and ``EventReport``, until ``StopProbing``
``StopProbing``        exactly one ``ProbingStopped``, after which nothing of that pod is probed there
``MakeSocket``         exactly one ``SocketMade`` or ``SocketRefused`` with the same number, unless the dialer
                       ends first
``ApplyManifests``     ``Reply`` with the same request_id; so for ``DeletePod``, ``DeleteObject``, ``RestartWorker``
                       and ``StopAgent``
=====================  ==========================================================================
"""

from ipc.messages.api_server import (
    AgentChanged,
    ApiServerFeed,
    ApiServerRequest,
    ApplyManifests,
    DeleteObject,
    DeletePod,
    EventChanged,
    EventGone,
    FeedSynced,
    ObjectChanged,
    ObjectGone,
    ObjectSummary,
    PodChanged,
    PodGone,
    Reply,
    RestartWorker,
    StopAgent,
    WorkerInfo,
)
from ipc.messages.base import (
    EventReport,
    PullEnded,
    PullProgress,
    Ready,
    Shutdown,
)
from ipc.messages.dialer import (
    DialerAnswer,
    DialerCommand,
    DialerReport,
    MakeSocket,
    SocketMade,
    SocketRefused,
)
from ipc.messages.node_worker import (
    CancelPull,
    CollectLogs,
    LookFailed,
    NodeWorkerCommand,
    NodeWorkerReport,
    Observation,
    Observe,
    Observed,
    Relist,
    Relisted,
    RuntimeHealth,
    ServiceSilent,
    StartPull,
    Track,
    Untrack,
)
from ipc.messages.pod_worker import (
    AbandonPull,
    CancelSync,
    ContainersChanged,
    PodWorkerCommand,
    PodWorkerReport,
    ProbePod,
    ProbeVerdict,
    ProbingStopped,
    PullFailure,
    PullImage,
    StopProbing,
    SyncAction,
    SyncDone,
    SyncPod,
    SyncResult,
    WorkType,
)
from ipc.messages.zygote import (
    Exited,
    NotBorn,
    SignalChild,
    Spawn,
    Spawned,
    ZygoteCommand,
    ZygoteReport,
)

__all__ = [
    "AbandonPull",
    "AgentChanged",
    "ApiServerFeed",
    "ApiServerRequest",
    "ApplyManifests",
    "CancelPull",
    "CancelSync",
    "CollectLogs",
    "ContainersChanged",
    "DeleteObject",
    "DeletePod",
    "DialerAnswer",
    "DialerCommand",
    "DialerReport",
    "EventChanged",
    "EventGone",
    "EventReport",
    "Exited",
    "FeedSynced",
    "LookFailed",
    "MakeSocket",
    "NodeWorkerCommand",
    "NodeWorkerReport",
    "NotBorn",
    "ObjectChanged",
    "ObjectGone",
    "ObjectSummary",
    "Observation",
    "Observe",
    "Observed",
    "PodChanged",
    "PodGone",
    "PodWorkerCommand",
    "PodWorkerReport",
    "ProbePod",
    "ProbeVerdict",
    "ProbingStopped",
    "PullEnded",
    "PullFailure",
    "PullImage",
    "PullProgress",
    "Ready",
    "Relist",
    "Relisted",
    "Reply",
    "RestartWorker",
    "RuntimeHealth",
    "ServiceSilent",
    "Shutdown",
    "SignalChild",
    "SocketMade",
    "SocketRefused",
    "Spawn",
    "Spawned",
    "StartPull",
    "StopAgent",
    "StopProbing",
    "SyncAction",
    "SyncDone",
    "SyncPod",
    "SyncResult",
    "Track",
    "Untrack",
    "WorkType",
    "WorkerInfo",
    "ZygoteCommand",
    "ZygoteReport",
]
