"""Messages between processes: one module per link, a catalogue of the links, sync errors and event reasons.

Which message answers which:

=====================  ==========================================================================
``Spawn``              ``Spawned``, and in the end ``Exited``; or ``SpawnFailed``
``SyncPod``            exactly one ``SyncDone`` with the same uid, generation and incarnation,
                       unless the worker dies first; any number of ``EventReport`` before it
``ObjectsRead``        nothing of its own: the sync it names, which has said that it ``awaits`` them, goes on
``CancelSync``         nothing of its own: the sync it names ends early with its ``SyncDone``
``Observe``            ``Observed`` that contains every uid asked for, observed after the request
``Relist``             ``Relisted``
``PullImage``          exactly one ``PullEnded`` for that reference, after any number of ``PullProgress``,
                       unless ``AbandonPull`` or the death of the worker that asked comes first
``CollectImages``      exactly one ``ImagesCollected`` with the same number, unless the node worker dies first;
                       likewise a numbered ``CollectLogs`` by ``LogsCollected``, and
                       ``DeleteVolume`` by ``VolumeDeleted`` of the same volume
``ProbePod``           any number of ``ProbeResultChanged`` and ``EventReport``, until ``StopProbing``
``StopProbing``        exactly one ``ProbingStopped``, after which that worker runs no probe of that pod
``MakeSocket``         exactly one ``SocketMade`` or ``SocketRefused`` with the same number, unless the dialer
                       ends first
``TakeProfile``        one ``ProfileTaken`` with the same number, unless the worker ends first
``Request``            ``Reply`` with the same request_id: for every request of `ipc.link.messages.api_server`
=====================  ==========================================================================
"""
