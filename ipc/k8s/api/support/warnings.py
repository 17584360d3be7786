"""Lines that warn of a pod: by event where it is admitted, and by the answer to whoever applies it. Pure."""

from typing import Final

from ipc.k8s.api.annotations import is_api_pod
from ipc.k8s.api.podman_annotations import USERNS, kept_id, pod_annotation_warnings
from ipc.k8s.api.support.cluster import is_of_cluster
from ipc.k8s.api.support.findings import UNSUPPORTED, unsupported_fields
from ipc.k8s.api.support.table import Support
from ipc.k8s.api.v1.pod import Pod

_OF_CLUSTER: Final = frozenset({Support.WARNED})


def field_warnings(pod: Pod) -> tuple[str, ...]:
    """A line for each field that would be acted on by a kubelet, and one for all that speak to a cluster, which is no
    news to a pod that comes from one."""
    is_api = is_api_pod(pod)
    found = unsupported_fields(pod, _OF_CLUSTER if is_api else UNSUPPORTED)
    findings = [each for each in found if not (is_api and is_of_cluster(each.path))]
    warned = tuple(f"{finding.path}: {finding.why}" for finding in findings if finding.support is Support.WARNED)
    cluster = [finding.path for finding in findings if finding.support is Support.NOT_APPLICABLE]
    honoured = (USERNS,) if kept_id(pod) is not None else ()
    warned += () if is_api else pod_annotation_warnings(pod.metadata.annotations, honoured)
    if not cluster:
        return warned
    return (*warned, f"{', '.join(cluster)}: these fields speak to a cluster, and have no effect on a single host")
