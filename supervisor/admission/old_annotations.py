"""Annotations that Kubernetes has given up for fields, and that nothing acts on any more. Pure.

The words are its API server's (pkg/api/pod/warnings.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ipc.k8s.api.v1.pod import Pod


class _Dead(NamedTuple):
    prefix: str
    """The whole key, or what stands before a container's name if it ends with a slash."""
    why: str

    def matches(self, key: str) -> bool:
        return key.startswith(self.prefix) if self.prefix.endswith("/") else key == self.prefix


_NO_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NO_SYSCTLS: Final = 'non-functional in v1.11+; use the "sysctls" field instead'
_DEAD: Final = (
    _Dead("seccomp.security.alpha.kubernetes.io/pod", _NO_SECCOMP),
    _Dead("container.seccomp.security.alpha.kubernetes.io/", _NO_SECCOMP),
    _Dead("security.alpha.kubernetes.io/sysctls", _NO_SYSCTLS),
    _Dead("security.alpha.kubernetes.io/unsafe-sysctls", _NO_SYSCTLS),
    _Dead(
        "scheduler.alpha.kubernetes.io/critical-pod",
        'non-functional in v1.16+; use the "priorityClassName" field instead',
    ),
)
_PREFIXES: Final = tuple(dead.prefix for dead in _DEAD)


def dead_annotations(pod: Pod) -> Iterator[str]:
    """One warning for each kind of them that the pod has, with the first such annotation."""
    if not any(key.startswith(_PREFIXES) for key in pod.metadata.annotations):
        return
    for dead in _DEAD:
        found = [key for key in pod.metadata.annotations if dead.matches(key)]
        if found:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            yield f"metadata.annotations[{found[0]}]{more}: {dead.why}"
