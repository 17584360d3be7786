"""What Rootlet does with every field of a v1 Pod: one table of values.

A row speaks for its field and everything below it, unless a row with a longer path speaks for that; rows of
`spec.containers[*]` speak for init and ephemeral containers, too, unless these have a row of their own. To act on a
field, change its row, run `python -m ipc.api.support > docs/pod-fields.md`, and nothing else here.
"""

from enum import Enum
from typing import Any, Final

import msgspec


class Support(Enum):
    """What becomes of a field that is set."""

    SUPPORTED = "supported"
    SUPPORTED_WITH_NOTE = "supported, with a note"
    WARNED = "warned"
    """Not acted on yet: the pod is admitted with a warning event."""
    REFUSED = "refused"
    """Running without it would be wrong or unsafe: the manifest is refused, as with a wrong value."""
    NOT_APPLICABLE = "not applicable"
    """Speaks to a cluster and asks nothing of a host: taken without a word."""


class FieldSupport(msgspec.Struct, frozen=True):
    """One row. `accepted` are values of a warned or refused field that are as good as acted on."""

    path: str
    support: Support
    why: str = ""
    accepted: tuple[Any, ...] = ()
    tests: tuple[str, ...] = ()
    """Of a supported field: end-to-end tests on real Podman, ``file::function`` below ``tests/``, that would fail if it
    were ignored."""


_YES: Final = Support.SUPPORTED
_NOTE: Final = Support.SUPPORTED_WITH_NOTE
_WARN: Final = Support.WARNED
_NO: Final = Support.REFUSED
_NA: Final = Support.NOT_APPLICABLE

_ONE_NODE: Final = "there is one node and no scheduler"
_NO_USER: Final = "the container would run as another user than asked for"
_NEXT_LIFE: Final = "changed in the manifest, it counts from the next start of the container on"
_PROBED_ANEW: Final = "changed in the manifest, it counts at once: the container goes on"
_NAMED: Final = "e2e/test_names.py::test_a_host_name_given_instead_of_the_pods"
_SERVERS: Final = "e2e/test_names.py::test_name_servers"
_PUBLISHED: Final = "e2e/test_host_ports.py::test_ports_are_published"
_NO_HANDLER: Final = "the kubelet takes it and calls it an invalid handler: the hook would fail each time"

OBJECT_ROWS: Final = (
    FieldSupport("apiVersion", _YES, "must be v1"),
    FieldSupport("kind", _YES, "must be Pod"),
    FieldSupport("metadata.name", _YES),
    FieldSupport("metadata.namespace", _NOTE, "a name only: it keeps pods of one name apart, nothing else"),
    FieldSupport("metadata.uid", _NOTE, "the pod's identity; made of source, namespace and name when not given"),
    FieldSupport("metadata.labels", _YES),
    FieldSupport("metadata.annotations", _YES),
    FieldSupport("metadata.generation", _YES),
    FieldSupport("metadata.creationTimestamp", _YES),
    FieldSupport("metadata.generateName", _NA, "nobody generates names: metadata.name is required"),
    FieldSupport("metadata.deletionTimestamp", _NA, "set by the API server; a pod goes when its manifest goes"),
    FieldSupport("metadata.deletionGracePeriodSeconds", _NA, "set by the API server"),
    FieldSupport("metadata.selfLink", _NA, "set by the API server"),
    FieldSupport("metadata.resourceVersion", _NA, "set by the API server"),
    FieldSupport("metadata.managedFields", _NA, "set by the API server"),
    FieldSupport("metadata.ownerReferences", _NA, "there are no controllers"),
    FieldSupport("metadata.finalizers", _NA, "there are no controllers"),
    FieldSupport("status", _NA, "a manifest's status is dropped; Rootlet writes its own"),
)

POD_ROWS: Final = (
    FieldSupport("spec.restartPolicy", _YES),
    FieldSupport("spec.terminationGracePeriodSeconds", _YES),
    FieldSupport(
        "spec.hostNetwork",
        _NOTE,
        "the host's network as the agent's user sees it: no ports below 1024",
        tests=("e2e/test_names.py::test_the_nodes_hosts_file_in_its_network",),
    ),
    FieldSupport("spec.hostname", _YES, "the pod's name when not given", tests=(_NAMED,)),
    FieldSupport("spec.os.name", _NO, "only Linux containers run here", ("linux",)),
    FieldSupport("spec.initContainers", _YES),
    FieldSupport("spec.initContainers[*].restartPolicy", _NOTE, "Always makes a sidecar of it"),
    FieldSupport(
        "spec.initContainers[*].ports[*].hostPort",
        _WARN,
        "a sidecar reserves it, but only regular containers' ports are published, as upstream",
    ),
    FieldSupport(
        "spec.ephemeralContainers",
        _NOTE,
        "added and changed by editing the manifest, at any time; started at once, never restarted",
    ),
    FieldSupport(
        "spec.volumes", _NO, "no volume is mounted yet: the data would be missing, or lost with the container"
    ),
    FieldSupport("spec.activeDeadlineSeconds", _YES),
    FieldSupport(
        "spec.dnsPolicy",
        _NOTE,
        "ClusterFirst and ClusterFirstWithHostNet mean Default unless clusterDNS is configured (docs/network.md)",
        tests=(_SERVERS, "e2e/test_names.py::test_a_clusters_dns"),
    ),
    FieldSupport("spec.dnsConfig.nameservers", _YES, tests=(_SERVERS,)),
    FieldSupport("spec.dnsConfig.searches", _YES, tests=(_SERVERS,)),
    FieldSupport("spec.dnsConfig.options", _YES, tests=(_SERVERS,)),
    FieldSupport(
        "spec.hostAliases",
        _NOTE,
        "changed in the manifest, they reach containers that run",
        tests=(
            "e2e/test_names.py::test_every_container_sees_the_managed_hosts_file",
            "e2e/test_names.py::test_other_aliases_reach_containers_that_run",
        ),
    ),
    FieldSupport("spec.hostnameOverride", _YES, tests=(_NAMED,)),
    FieldSupport(
        "spec.subdomain",
        _NOTE,
        "names the pod in its own hosts file, and on a bridge with DNS; without clusterDomain the domain ends in svc",
        tests=(_NAMED,),
    ),
    FieldSupport("spec.setHostnameAsFQDN", _YES, tests=(_NAMED,)),
    FieldSupport(
        "spec.hostPID",
        _NOTE,
        "the host's processes are seen; only those of this user, as it may, can be reached",
        tests=("e2e/test_namespaces.py::test_the_hosts_processes",),
    ),
    FieldSupport(
        "spec.hostIPC",
        _NOTE,
        "needs /dev/mqueue on the host, which distributions mount",
        tests=("e2e/test_namespaces.py::test_the_hosts_ipc",),
    ),
    FieldSupport(
        "spec.shareProcessNamespace",
        _YES,
        tests=("e2e/test_namespaces.py::test_one_process_namespace_for_the_pod",),
    ),
    FieldSupport(
        "spec.hostUsers",
        _WARN,
        "every pod runs in the agent's user namespace: root in it is no root on the host, but pods share it",
        (True,),
    ),
    FieldSupport("spec.runtimeClassName", _NO, "it asks for another kind of isolation than Podman's runtime gives"),
    FieldSupport("spec.resources", _WARN, "limits are not enforced yet"),
    FieldSupport("spec.resourceClaims", _NO, "the devices would be missing"),
    FieldSupport("spec.overhead", _NA, "set for a runtime class"),
    FieldSupport("spec.imagePullSecrets", _WARN, "images are pulled with the registry logins of the agent's user"),
    FieldSupport("spec.readinessGates", _WARN, "Ready does not wait for further conditions"),
    FieldSupport("spec.schedulingGates", _NO, "a gated pod must not start, and nobody here opens the gate"),
    FieldSupport("spec.priority", _WARN, "no pod gives way to another yet"),
    FieldSupport("spec.priorityClassName", _WARN, "no pod gives way to another yet"),
    FieldSupport("spec.preemptionPolicy", _NA, _ONE_NODE),
    FieldSupport("spec.nodeName", _NA, "every pod of a source of this host is this host's"),
    FieldSupport("spec.nodeSelector", _NA, _ONE_NODE),
    FieldSupport("spec.affinity", _NA, _ONE_NODE),
    FieldSupport("spec.tolerations", _NA, _ONE_NODE),
    FieldSupport("spec.topologySpreadConstraints", _NA, _ONE_NODE),
    FieldSupport("spec.schedulerName", _NA, _ONE_NODE),
    FieldSupport("spec.schedulingGroup", _NA, _ONE_NODE),
    FieldSupport("spec.serviceAccountName", _NA, "there is no API server to be known to"),
    FieldSupport("spec.serviceAccount", _NA, "there is no API server to be known to"),
    FieldSupport("spec.automountServiceAccountToken", _NA, "there is no API server to be known to"),
    FieldSupport("spec.enableServiceLinks", _NA, "there are no services"),
)

POD_SECURITY_ROWS: Final = (
    FieldSupport("spec.securityContext.runAsUser", _NO, _NO_USER),
    FieldSupport("spec.securityContext.runAsGroup", _NO, _NO_USER),
    FieldSupport("spec.securityContext.runAsNonRoot", _NO, "it would not be checked", (False,)),
    FieldSupport("spec.securityContext.supplementalGroups", _NO, _NO_USER),
    FieldSupport("spec.securityContext.supplementalGroupsPolicy", _NO, _NO_USER, ("Merge",)),
    FieldSupport("spec.securityContext.fsGroup", _NO, "volumes would belong to another group"),
    FieldSupport("spec.securityContext.fsGroupChangePolicy", _NA, "only says how fsGroup, which is refused, is done"),
    FieldSupport("spec.securityContext.sysctls", _NO, "the kernel parameters would not be set"),
    FieldSupport(
        "spec.securityContext.seccompProfile.type",
        _NO,
        "Podman's default profile is always on; no other can be chosen yet",
        ("RuntimeDefault",),
    ),
    FieldSupport("spec.securityContext.seccompProfile.localhostProfile", _NO, "the profile would not be loaded"),
    FieldSupport(
        "spec.securityContext.appArmorProfile.type",
        _NO,
        "rootless containers cannot load AppArmor profiles",
        ("Unconfined", "RuntimeDefault"),
    ),
    FieldSupport("spec.securityContext.appArmorProfile.localhostProfile", _NO, "the profile would not be loaded"),
    FieldSupport("spec.securityContext.seLinuxOptions", _NO, "the label would not be set"),
    FieldSupport("spec.securityContext.seLinuxChangePolicy", _NA, "only says how seLinuxOptions, refused, is done"),
    FieldSupport("spec.securityContext.windowsOptions", _NO, "only Linux containers run here"),
)

CONTAINER_ROWS: Final = (
    FieldSupport("spec.containers[*].name", _YES),
    FieldSupport("spec.containers[*].image", _YES),
    FieldSupport("spec.containers[*].imagePullPolicy", _YES),
    FieldSupport("spec.containers[*].command", _YES),
    FieldSupport("spec.containers[*].args", _YES),
    FieldSupport("spec.containers[*].workingDir", _YES),
    FieldSupport("spec.containers[*].env[*].name", _YES),
    FieldSupport("spec.containers[*].env[*].value", _YES),
    FieldSupport("spec.containers[*].env[*].valueFrom", _NO, "the variable would be missing"),
    FieldSupport("spec.containers[*].envFrom", _NO, "the variables would be missing"),
    FieldSupport("spec.containers[*].ports[*].name", _YES),
    FieldSupport("spec.containers[*].ports[*].containerPort", _NOTE, "tells, and publishes only with a hostPort"),
    FieldSupport(
        "spec.containers[*].ports[*].hostPort",
        _NOTE,
        "one below net.ipv4.ip_unprivileged_port_start is not this user's to give: such a pod is rejected",
        tests=(_PUBLISHED, "e2e/test_host_ports.py::test_ports_that_cannot_be_had"),
    ),
    FieldSupport("spec.containers[*].ports[*].hostIP", _YES, tests=(_PUBLISHED,)),
    FieldSupport(
        "spec.containers[*].ports[*].protocol",
        _NOTE,
        "rootless Podman cannot publish SCTP: with a hostPort such a pod is rejected",
        tests=(_PUBLISHED, "e2e/test_host_ports.py::test_ports_that_cannot_be_had"),
    ),
    FieldSupport(
        "spec.containers[*].stdin", _NOTE, "without a tty it ends with the first client that attaches, as if stdinOnce"
    ),
    FieldSupport(
        "spec.containers[*].stdinOnce", _NOTE, "always so without a tty, never with one: Podman has no choice"
    ),
    FieldSupport("spec.containers[*].tty", _YES),
    FieldSupport("spec.containers[*].terminationMessagePath", _YES),
    FieldSupport("spec.containers[*].terminationMessagePolicy", _NOTE, _NEXT_LIFE),
    FieldSupport("spec.containers[*].resources", _WARN, "limits are not enforced yet"),
    FieldSupport("spec.containers[*].resources.claims", _NO, "the devices would be missing"),
    FieldSupport("spec.containers[*].resizePolicy", _NA, "resources are not resized in place"),
    FieldSupport("spec.containers[*].restartPolicy", _YES, "the pod's when not given"),
    FieldSupport("spec.containers[*].restartPolicyRules", _YES),
    FieldSupport("spec.containers[*].volumeMounts", _NO, "no volume is mounted yet"),
    FieldSupport("spec.containers[*].volumeDevices", _NO, "no volume is mounted yet"),
    FieldSupport("spec.containers[*].livenessProbe", _NOTE, _PROBED_ANEW),
    FieldSupport("spec.containers[*].readinessProbe", _NOTE, _PROBED_ANEW),
    FieldSupport("spec.containers[*].startupProbe", _NOTE, _PROBED_ANEW),
    FieldSupport("spec.containers[*].lifecycle.postStart.exec", _YES),
    FieldSupport("spec.containers[*].lifecycle.postStart.sleep", _YES),
    FieldSupport("spec.containers[*].lifecycle.postStart.httpGet", _YES),
    FieldSupport("spec.containers[*].lifecycle.postStart.tcpSocket", _NO, _NO_HANDLER),
    FieldSupport("spec.containers[*].lifecycle.preStop.exec", _YES),
    FieldSupport("spec.containers[*].lifecycle.preStop.sleep", _YES),
    FieldSupport("spec.containers[*].lifecycle.preStop.httpGet", _YES),
    FieldSupport("spec.containers[*].lifecycle.preStop.tcpSocket", _NO, _NO_HANDLER),
    FieldSupport("spec.containers[*].lifecycle.stopSignal", _NOTE, _NEXT_LIFE),
)

_CONTEXT: Final = "spec.containers[*].securityContext"

CONTAINER_SECURITY_ROWS: Final = (
    FieldSupport(f"{_CONTEXT}.runAsUser", _NO, _NO_USER),
    FieldSupport(f"{_CONTEXT}.runAsGroup", _NO, _NO_USER),
    FieldSupport(f"{_CONTEXT}.runAsNonRoot", _NO, "it would not be checked", (False,)),
    FieldSupport(f"{_CONTEXT}.privileged", _NO, "the container would lack the rights it asks for", (False,)),
    FieldSupport(f"{_CONTEXT}.allowPrivilegeEscalation", _NO, "escalation would stay possible", (True,)),
    FieldSupport(f"{_CONTEXT}.readOnlyRootFilesystem", _NO, "the file system would be writable", (False,)),
    FieldSupport(f"{_CONTEXT}.capabilities.add", _NO, "the container would lack the rights it asks for"),
    FieldSupport(f"{_CONTEXT}.capabilities.drop", _NO, "the container would have more rights than it asks for"),
    FieldSupport(f"{_CONTEXT}.procMount", _NO, "the masks of /proc stay", ("Default",)),
    FieldSupport(
        f"{_CONTEXT}.seccompProfile.type",
        _NO,
        "Podman's default profile is always on; no other can be chosen yet",
        ("RuntimeDefault",),
    ),
    FieldSupport(f"{_CONTEXT}.seccompProfile.localhostProfile", _NO, "the profile would not be loaded"),
    FieldSupport(
        f"{_CONTEXT}.appArmorProfile.type",
        _NO,
        "rootless containers cannot load AppArmor profiles",
        ("Unconfined", "RuntimeDefault"),
    ),
    FieldSupport(f"{_CONTEXT}.appArmorProfile.localhostProfile", _NO, "the profile would not be loaded"),
    FieldSupport(f"{_CONTEXT}.seLinuxOptions", _NO, "the label would not be set"),
    FieldSupport(f"{_CONTEXT}.windowsOptions", _NO, "only Linux containers run here"),
)

SECTIONS: Final = (
    ("The object", OBJECT_ROWS),
    ("The pod", POD_ROWS),
    ("The pod's security context", POD_SECURITY_ROWS),
    ("Containers", CONTAINER_ROWS),
    ("A container's security context", CONTAINER_SECURITY_ROWS),
)
ROWS: Final = tuple(row for _, rows in SECTIONS for row in rows)
