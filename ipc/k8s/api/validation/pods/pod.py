"""The whole pod."""

from ipc.k8s.api.errors import FieldError
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.validation.checks import (
    MAX_INT32,
    Errors,
    at_least,
    first_errors,
    if_set,
    in_range,
    indexed,
    well_formed,
)
from ipc.k8s.api.validation.metadata import validate_metadata
from ipc.k8s.api.validation.names import DNS_SUBDOMAIN
from ipc.k8s.api.validation.pods.containers import validate_containers
from ipc.k8s.api.validation.pods.network import validate_network
from ipc.k8s.api.validation.pods.scheduling import validate_scheduling
from ipc.k8s.api.validation.pods.security import (
    validate_host_namespaces,
    validate_host_sysctls,
    validate_pod_security_context,
)
from ipc.k8s.api.validation.pods.volumes import validate_volumes
from ipc.k8s.api.validation.resources import validate_pod_resources, validate_resource_list
from ipc.k8s.network.bandwidth import EGRESS, INGRESS, bandwidth_problem


def validate_pod(pod: Pod) -> tuple[FieldError, ...]:
    """Faults for which Kubernetes would refuse this pod, as far as they matter on a host; () when it is valid.

    Meant for a defaulted pod, and right for a plain one too. At most MAX_FIELD_ERRORS findings.
    Source: pkg/apis/core/validation ValidatePodCreate; each module here names the functions it mirrors.
    """
    metadata = pod.metadata
    return first_errors(validate_metadata(metadata, "metadata"), _bandwidth(metadata), _spec(pod.spec, "spec"))


def _bandwidth(metadata: ObjectMeta) -> Errors:
    """ExtractPodBandwidthResources (pkg/util/bandwidth/utils.go)."""
    for key in (INGRESS, EGRESS):
        if key in metadata.annotations:
            yield from well_formed(f"metadata.annotations[{key}]", metadata.annotations[key], bandwidth_problem)


def _spec(spec: PodSpec, path: str) -> Errors:
    yield from at_least(f"{path}.terminationGracePeriodSeconds", spec.termination_grace_period_seconds, 0)
    yield from in_range(f"{path}.activeDeadlineSeconds", spec.active_deadline_seconds, 1, MAX_INT32)
    yield from validate_volumes(spec.volumes, f"{path}.volumes")
    yield from validate_containers(spec, path)
    if spec.resources is not None:
        yield from validate_pod_resources(spec.resources, f"{path}.resources")
    yield from validate_resource_list(spec.overhead, f"{path}.overhead")
    if spec.security_context is not None:
        yield from validate_pod_security_context(spec.security_context, f"{path}.securityContext")
    yield from validate_host_namespaces(spec, path)
    yield from validate_host_sysctls(spec, path)
    yield from validate_network(spec, path)
    yield from validate_scheduling(spec, path)
    yield from _references(spec, path)


def _references(spec: PodSpec, path: str) -> Errors:
    names = {
        "serviceAccountName": spec.service_account_name,
        "priorityClassName": spec.priority_class_name,
        "runtimeClassName": spec.runtime_class_name,
    }
    for name, value in names.items():
        yield from if_set(f"{path}.{name}", value, DNS_SUBDOMAIN.problem)
    for below, secret in indexed(f"{path}.imagePullSecrets", spec.image_pull_secrets):
        yield from if_set(f"{below}.name", secret.name, DNS_SUBDOMAIN.problem)
