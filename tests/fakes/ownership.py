"""Identity of tests to Podman: an instance with a key that is no secret."""

from __future__ import annotations

from typing import Any

from ipc.k8s.kubecontainer.label_key import SECRET_BYTES, LabelKey
from workers.kubecontainer import labels
from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.naming import infra_name_of
from workers.kubecontainer.runtime import SpecDict

LABEL_KEY = LabelKey(secret=bytes(SECRET_BYTES), made_at=0.0)
"""Older than everything: nothing is adopted without a signature."""


def ownership(instance: str) -> Ownership:
    return Ownership(instance=instance, key=LABEL_KEY)


def signed_container(spec: SpecDict) -> dict[str, Any]:
    """Specification whose container is of the instance that it names, whatever it is called."""
    own = spec["labels"]
    return {**spec, "labels": ownership(own.get(labels.INSTANCE, "")).signed_container(spec["name"], own)}


def signed_pod(spec: SpecDict) -> dict[str, Any]:
    """Spec of a sandbox with signed labels, and of its infra container if it has one."""
    own, name = spec["labels"], spec["name"]
    infra = {} if spec.get("no_infra") else {"infra_name": infra_name_of(name)}
    return {**infra, **spec, "labels": ownership(own.get(labels.INSTANCE, "")).signed_sandbox(name, own)}
