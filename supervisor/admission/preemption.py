"""Pods that give way to a critical one that has no room: those whose end does the least harm. Pure.

Mirrors pkg/kubelet/preemption/preemption.go: guaranteed pods are spared most, then burstable ones, then those of best
effort; within each class as few as possible, and of two that serve alike the one with the smaller requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.pod_requests import CPU, MEMORY, PODS, pod_requests
from ipc.k8s.podresources.qos import compute_pod_qos
from ipc.k8s.scheduling.priority import can_preempt, is_critical
from supervisor.admission.predicates import UNEXPECTED_ADMISSION_ERROR, Rejected
from supervisor.admission.resource_fit import Shortage

Requirements = Mapping[str, int]
"""Amount that is missing of each resource, in the units of `ipc.k8s.podresources.pod_requests`."""
_TIE_BREAKERS: Final = (MEMORY, CPU)


class NoVictims(Exception):
    """All pods that may be preempted together do not have what is missing."""


class Candidate(msgspec.Struct, frozen=True):
    """A pod that may be preempted, and what that would give back."""

    pod: Pod
    requests: Requirements


def candidate(pod: Pod) -> Candidate:
    return Candidate(pod, {**pod_requests(pod), PODS: 1})


def recover(
    pod: Pod, rejections: Sequence[Rejected], shortages: Iterable[Shortage], others: Iterable[Pod]
) -> tuple[Pod, ...] | Rejected:
    """Pods to preempt so that one which was rejected for a lack of resources fits, or why it stays rejected
    (HandleAdmissionFailure). ``rejections``: those for other reasons; ``others``: the pods that are active."""
    needed = {shortage.resource: shortage.missing for shortage in shortages}
    if rejections or not is_critical(pod):
        return next(iter((*rejections, *(Rejected(s.reason, s.message) for s in shortages))))
    try:
        return pods_to_preempt(pod, others, needed)
    except NoVictims as error:
        why = f"preemption: error finding a set of pods to preempt: {error}"
        message = f"Unexpected error while attempting to recover from admission failure: {why}"
        return Rejected(UNEXPECTED_ADMISSION_ERROR, message)


def pods_to_preempt(preemptor: Pod, others: Iterable[Pod], needed: Requirements) -> tuple[Pod, ...]:
    """getPodsToPreempt. Raises NoVictims."""
    classes: dict[str, list[Candidate]] = {"BestEffort": [], "Burstable": [], "Guaranteed": []}
    for other in others:
        if can_preempt(preemptor, other):
            classes[compute_pod_qos(other)].append(candidate(other))
    best_effort, burstable, guaranteed = classes.values()
    if unmet := remaining(needed, (*best_effort, *burstable, *guaranteed)):
        raise NoVictims(_nobody_has(unmet))
    # Each class gives only what all pods of the lesser classes, and the chosen ones of the better, leave open.
    last = _nearest(guaranteed, remaining(needed, (*best_effort, *burstable)))
    middle = _nearest(burstable, remaining(needed, (*best_effort, *last)))
    first = _nearest(best_effort, remaining(needed, (*middle, *last)))
    return tuple(found.pod for found in (*first, *middle, *last))


def _nearest(candidates: Sequence[Candidate], needed: Requirements) -> list[Candidate]:
    """The candidates that come nearest to what is needed, one after the other (getPodsToPreemptByDistance)."""
    left, chosen = list(candidates), list[Candidate]()
    while needed:
        if not left:
            raise NoVictims(_nobody_has(needed))
        best = 0
        for index in range(1, len(left)):
            if _is_better(left[index], left[best], needed):
                best = index
        needed = remaining(needed, (left[best],))
        chosen.append(left[best])
        left[best] = left[-1]
        left.pop()
    return chosen


def _is_better(one: Candidate, other: Candidate, needed: Requirements) -> bool:
    own, best = distance(needed, one), distance(needed, other)
    return own < best or (own == best and has_smaller_requests(one, other))


def distance(needed: Requirements, found: Candidate) -> float:
    """Squared shares of the requirements that the pod's end leaves open: each weighs the same."""
    missing = ((amount - found.requests.get(name, 0), amount) for name, amount in needed.items())
    return sum(((left / amount) ** 2 for left, amount in missing if left > 0), 0.0)


def remaining(needed: Requirements, found: Iterable[Candidate]) -> dict[str, int]:
    """Requirements that the end of these pods leaves open."""
    gone = list(found)
    left = {name: amount - sum(each.requests.get(name, 0) for each in gone) for name, amount in needed.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def has_smaller_requests(one: Candidate, other: Candidate) -> bool:
    """Whether the first asks for less memory, or for as much and not more CPU (smallerResourceRequest)."""
    mine, its = (tuple(each.requests.get(name, 0) for name in _TIE_BREAKERS) for each in (one, other))
    return mine <= its


def _nobody_has(needed: Requirements) -> str:
    amounts = "".join(f"(res: {name}, q: {amount}), " for name, amount in needed.items())
    return f"no set of running pods found to reclaim resources: [{amounts}]"
