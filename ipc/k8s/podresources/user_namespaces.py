"""User namespaces of pods: which have one of their own, and which ids they have there. Pure.

Upstream gives every pod with ``hostUsers: false`` 65536 (pkg/kubelet/userns), which is all that a rootless user has.
Here a pod gets `MIN_IDS`, and more when it names a higher one. Podman's annotation of a pod may ask for another one, in
which the agent's user keeps their id (podman-kube-play(1)).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.api.podman_annotations import kept_id
from ipc.k8s.api.v1.pod import Pod, PodSpec

MIN_IDS: Final = 2048
"""Enough for what images number: system users up to 999, people from 1000 on. 32 such pods share 65536 ids."""


def has_own_ids(pod: Pod) -> bool:
    """Whether the pod's ids are not those of the other pods."""
    return pod.spec.host_users is False or kept_id(pod) is not None


def ids_of_pod(spec: PodSpec) -> int:
    """How many, from 0 on, users as well as groups."""
    return max(MIN_IDS, 1 + max(_named(spec), default=0))


def _named(spec: PodSpec) -> Iterator[int]:
    contexts = (spec.security_context, *(found.container.security_context for found in every_container(spec)))
    for context in contexts:
        if context is not None:
            yield from (id for id in (context.run_as_user, context.run_as_group) if id is not None)
    if spec.security_context is not None:
        yield from spec.security_context.supplemental_groups
        yield spec.security_context.fs_group or 0
