"""The traffic that a pod's annotations allow it. Pure.

Mirrors pkg/util/bandwidth/utils.go (ExtractPodBandwidthResources, validateBandwidthIsReasonable).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import msgspec

from ipc.k8s.api.quantity import QuantityError, parse_quantity

INGRESS: Final = "kubernetes.io/ingress-bandwidth"
EGRESS: Final = "kubernetes.io/egress-bandwidth"
_LEAST: Final = Fraction(10**3)
_MOST: Final = Fraction(10**15)


class Bandwidth(msgspec.Struct, frozen=True):
    """In bits per second; None is without a limit."""

    ingress: int | None = None
    egress: int | None = None


UNLIMITED: Final = Bandwidth()


def pod_bandwidth(annotations: Mapping[str, str]) -> Bandwidth:
    """Bandwidth that the annotations state; one that is wrong, which validation refuses, limits nothing."""
    return Bandwidth(_rate(annotations.get(INGRESS)), _rate(annotations.get(EGRESS)))


def bandwidth_problem(text: str) -> str | None:
    """Problem with the value of such an annotation, or None."""
    try:
        value = parse_quantity(text)
    except QuantityError as error:
        return str(error)
    if value < _LEAST:
        return "resource is unreasonably small (< 1kbit)"
    return "resource is unreasonably large (> 1Pbit)" if value > _MOST else None


def _rate(text: str | None) -> int | None:
    return None if text is None or bandwidth_problem(text) else int(parse_quantity(text))
