"""Checks of the manifests for this host: read once, as the agent reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ipc.host.clock import Clock
from ipc.k8s.api.defaults import image_pull_policy
from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.api.v1.pod import Pod
from supervisor.admission.host_ports import host_ports
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.predicates import Admitted, admit
from supervisor.config.settings import Settings
from supervisor.doctor.findings import Finding, failed, ok, warning
from supervisor.doctor.host import HostFacts
from supervisor.protocol.manifests import (
    APPLY_SOURCE,
    FILE_SOURCE,
    HTTP_SOURCE,
    ManifestError,
    pod_key,
)
from supervisor.sources import checkpoint
from supervisor.sources.directory import ManifestReader, seen_listing
from supervisor.sources.manager import CHECKPOINT_FILE
from supervisor.sources.objects.identity import Origin
from supervisor.sources.objects.merge import PodConfig
from supervisor.sources.source_place import FILE as PLACE_FILE

LOCAL_REGISTRY: Final = "localhost/"


def read_manifests(settings: Settings, clock: Clock) -> tuple[tuple[Pod, ...], tuple[ManifestError, ...]]:
    """The pods that would be supervised, and what is wrong. Blocks.

    Of two files of one pod that one counts which the agent has read first: its checkpoint says which.
    """
    origin = Origin(instance=settings.instance_name, node_name=settings.node_name, source=FILE_SOURCE)
    reader = ManifestReader(settings.static_pod_path, origin, settings.max_manifest_bytes)
    snapshot = reader.read(seen_listing(settings.static_pod_path, settings.state_dir / PLACE_FILE))
    config = PodConfig((FILE_SOURCE, APPLY_SOURCE, HTTP_SOURCE))
    config.restore(checkpoint.seen(settings.state_dir / CHECKPOINT_FILE))
    config.merge(snapshot, clock.now())
    pods = tuple(item.pod for item in config.desired() if item.source == FILE_SOURCE)
    return pods, (*snapshot.errors, *config.conflicts())


def check_manifests(
    pods: Sequence[Pod], errors: Iterable[ManifestError], facts: HostFacts, settings: Settings
) -> list[Finding]:
    """Check for each pod what the host, and those before it that would be admitted, leave of it."""
    if not settings.static_pod_path.exists():
        return [warning("manifests", f"{settings.static_pod_path} does not exist yet")]
    found = [failed("manifest", str(error)) for error in errors]
    found += _check_pods(pods, facts, settings)
    return found or [ok("manifests", f"{len(pods)} pods in {settings.static_pod_path}")]


def _check_pods(pods: Iterable[Pod], facts: HostFacts, settings: Settings) -> Iterator[Finding]:
    admitted = NodeUsage()
    for pod in pods:
        subject = f"pod {'/'.join(pod_key(pod))}"
        admission = admit(pod, admitted, settings, facts.node)
        if isinstance(admission, Admitted):
            admitted.put(pod)
            yield from (warning(subject, text) for text in admission.warnings)
        else:
            yield failed(subject, f"would be rejected: {admission.reason}: {admission.message}")
        yield from _ports(subject, pod, facts)
        yield from _images(subject, pod, facts)


def _ports(subject: str, pod: Pod, facts: HostFacts) -> Iterator[Finding]:
    """While an agent runs, its own pods hold their ports."""
    for port in host_ports(pod):
        if not facts.agent_runs and (port.protocol, port.port) in facts.listening:
            yield failed(subject, f"port {port} is held by another program")


def _images(subject: str, pod: Pod, facts: HostFacts) -> Iterator[Finding]:
    """Images that nobody can fetch. The content of a registry is told by the pull."""
    if facts.podman is None or facts.podman.error:
        return
    for container in (found.container for found in every_container(pod.spec)):
        policy = container.image_pull_policy or image_pull_policy(container.image)
        is_there = any(name in facts.podman.images for name in _names(container.image))
        if is_there or not (policy == "Never" or container.image.startswith(LOCAL_REGISTRY)):
            continue
        why = "imagePullPolicy is Never" if policy == "Never" else "no registry has it"
        yield failed(subject, f"image {container.image} of {container.name} is not there, and {why}")


def _names(image: str) -> Iterator[str]:
    """As Podman may list it."""
    last = image.rpartition("/")[2]
    tagged = image if ":" in last or "@" in image else f"{image}:latest"
    yield from (tagged, f"docker.io/{tagged}", f"docker.io/library/{tagged}", f"{LOCAL_REGISTRY}{tagged}")
