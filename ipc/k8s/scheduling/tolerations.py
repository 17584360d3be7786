"""Whether a pod tolerates a node's taints (k8s.io/component-helpers scheduling/corev1/helpers.go,
FindMatchingUntoleratedTaint, and k8s.io/api/core/v1/toleration.go). Pure.

The operators that compare numbers are not there: their feature gate is off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ipc.k8s.api.v1.scheduling import Taint, Toleration


def tolerates_all(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> bool:
    """Whether each taint is tolerated by one of the tolerations."""
    return all(any(tolerates(toleration, taint) for toleration in tolerations) for taint in taints)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """ToleratesTaint: an empty effect is every one, an empty key with Exists is every one."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.key == taint.key and toleration.value == taint.value
