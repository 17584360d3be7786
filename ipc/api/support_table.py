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
    FieldSupport("spec.hostNetwork", _NOTE, "the host's network as the agent's user sees it: no ports below 1024"),
    FieldSupport("spec.hostname", _YES, "the pod's name when not given"),
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
    FieldSupport("spec.volumes", _NO, "nothing on this host provides such a volume"),
    FieldSupport("spec.activeDeadlineSeconds", _YES),
    FieldSupport(
        "spec.dnsPolicy",
        _NO,
        "the resolver is the host's, which is what these policies mean without a cluster DNS",
        ("", "ClusterFirst", "ClusterFirstWithHostNet", "Default"),
    ),
    FieldSupport("spec.dnsConfig.nameservers", _NO, "names would be resolved by other servers"),
    FieldSupport("spec.dnsConfig.searches", _NO, "short names would not be found, or be other hosts"),
    FieldSupport("spec.dnsConfig.options", _WARN, "the resolver keeps its own options"),
    FieldSupport("spec.hostAliases", _NO, "the names would not be found, or be other hosts"),
    FieldSupport("spec.hostnameOverride", _WARN, "the host name stays spec.hostname or the pod's name"),
    FieldSupport("spec.subdomain", _NA, "there is no cluster domain"),
    FieldSupport("spec.setHostnameAsFQDN", _NA, "there is no cluster domain"),
    FieldSupport("spec.hostPID", _NO, "the pod has a PID namespace of its own", (False,)),
    FieldSupport("spec.hostIPC", _NO, "the pod has an IPC namespace of its own", (False,)),
    FieldSupport("spec.shareProcessNamespace", _NO, "each container has a PID namespace of its own", (False,)),
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
    FieldSupport(
        "spec.securityContext.fsGroup",
        _NOTE,
        "a group of the agent's user namespace: 0 to 65535, as a rule; not of hostPath and image volumes, as upstream",
        tests=("e2e/test_volume_ownership.py::test_volumes_belong_to_the_group",),
    ),
    FieldSupport(
        "spec.securityContext.fsGroupChangePolicy",
        _YES,
        "of claims: nothing else keeps its files, as upstream",
        tests=("e2e/test_volume_ownership.py::test_a_claim_is_changed_by_policy",),
    ),
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
    FieldSupport("spec.containers[*].ports[*].hostPort", _NOTE, "a rootless host has no ports below 1024 to give"),
    FieldSupport("spec.containers[*].ports[*].hostIP", _YES),
    FieldSupport(
        "spec.containers[*].ports[*].protocol", _NO, "rootless Podman cannot forward SCTP", ("", "TCP", "UDP")
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
    FieldSupport("spec.containers[*].volumeDevices", _NO, "a rootless user has no block devices to give"),
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

_MOUNT: Final = "spec.containers[*].volumeMounts[*]"

VOLUME_ROWS: Final = (
    FieldSupport(
        "spec.volumes[*].emptyDir",
        _NOTE,
        "what a volume without a source is, too; medium HugePages is refused: a rootless user has none to give; "
        "sizeLimit is where a tmpfs ends, and on the disk nothing holds the pod to it",
        tests=(
            "e2e/test_volumes.py::test_an_empty_dir_outlives_its_containers_and_not_its_pod",
            "e2e/test_volumes.py::test_memory_is_limited_and_shared",
        ),
    ),
    FieldSupport(
        "spec.volumes[*].hostPath",
        _NOTE,
        "what the agent's user may read and write, as root of the pod; a path of no type that is not there becomes a "
        "directory",
        tests=("e2e/test_volumes.py::test_what_a_container_sees",),
    ),
    FieldSupport(
        "spec.volumes[*].hostPath.type", _YES, tests=("e2e/test_volumes.py::test_a_host_path_of_another_type_waits",)
    ),
    FieldSupport(
        "spec.volumes[*].image",
        _YES,
        tests=("e2e/test_volumes.py::test_what_a_container_sees",),
    ),
    FieldSupport(
        "spec.volumes[*].image.pullPolicy",
        _YES,
        tests=("e2e/test_volumes.py::test_an_image_that_is_not_there_is_its_containers_reason",),
    ),
    FieldSupport(
        "spec.volumes[*].persistentVolumeClaim",
        _NOTE,
        "the Podman volume of the claim's name, made when absent and never removed; no namespaces",
        tests=("e2e/test_volumes.py::test_a_claim_is_a_podman_volume_that_stays",),
    ),
    FieldSupport(f"{_MOUNT}.name", _YES, tests=("e2e/test_volumes.py::test_what_a_container_sees",)),
    FieldSupport(f"{_MOUNT}.mountPath", _YES, tests=("e2e/test_volumes.py::test_what_a_container_sees",)),
    FieldSupport(f"{_MOUNT}.readOnly", _YES, tests=("e2e/test_volumes.py::test_what_a_container_may_write",)),
    FieldSupport(
        f"{_MOUNT}.recursiveReadOnly",
        _YES,
        "needs Linux 5.12; IfPossible is as Enabled",
        tests=("e2e/test_volume_propagation.py::test_read_only_to_the_last_mount",),
    ),
    FieldSupport(
        f"{_MOUNT}.mountPropagation",
        _NOTE,
        "with the mounts of Podman's mount namespace, which gets those of the host and gives it none",
        tests=("e2e/test_volume_propagation.py::test_a_mount_reaches_those_that_want_it",),
    ),
    FieldSupport(
        f"{_MOUNT}.subPath",
        _NOTE,
        "of an image from Podman 5.4 on; not of a claim on a volume with a driver or options of its own",
        tests=("e2e/test_sub_paths.py::test_parts_of_volumes",),
    ),
    FieldSupport(f"{_MOUNT}.subPathExpr", _NOTE, "as subPath", tests=("e2e/test_sub_paths.py::test_parts_of_volumes",)),
)

_FILES: Final = "e2e/test_object_volumes.py::test_what_a_container_sees"
_NO_SERVER: Final = "there is no API server to ask for it"

OBJECT_VOLUME_ROWS: Final = (
    FieldSupport("spec.volumes[*].name", _YES, tests=(_FILES,)),
    FieldSupport("spec.volumes[*].configMap", _YES, tests=(_FILES,)),
    FieldSupport(
        "spec.volumes[*].configMap.optional",
        _YES,
        tests=("e2e/test_object_volumes.py::test_what_is_optional_is_not_waited_for",),
    ),
    FieldSupport(
        "spec.volumes[*].secret",
        _NOTE,
        "written to memoryDir, which has to be a file system in memory; whether that is swapped is the host's business",
        tests=(_FILES, "e2e/test_object_volumes.py::test_a_secret_is_in_memory_only"),
    ),
    FieldSupport(
        "spec.volumes[*].secret.optional",
        _YES,
        tests=("e2e/test_object_volumes.py::test_what_is_optional_is_not_waited_for",),
    ),
    FieldSupport("spec.volumes[*].downwardAPI", _YES, tests=(_FILES,)),
    FieldSupport("spec.volumes[*].projected.defaultMode", _YES, tests=(_FILES,)),
    FieldSupport("spec.volumes[*].projected.sources[*].configMap", _YES, tests=(_FILES,)),
    FieldSupport("spec.volumes[*].projected.sources[*].downwardAPI", _YES, tests=(_FILES,)),
    FieldSupport("spec.volumes[*].projected.sources[*].secret", _NOTE, "as a volume of its kind", tests=(_FILES,)),
    FieldSupport("spec.volumes[*].projected.sources[*].serviceAccountToken", _NO, _NO_SERVER),
    FieldSupport("spec.volumes[*].projected.sources[*].clusterTrustBundle", _NO, _NO_SERVER),
    FieldSupport("spec.volumes[*].projected.sources[*].podCertificate", _NO, _NO_SERVER),
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
    ("Volumes", VOLUME_ROWS),
    ("Volumes of objects", OBJECT_VOLUME_ROWS),
    ("A container's security context", CONTAINER_SECURITY_ROWS),
)
ROWS: Final = tuple(row for _, rows in SECTIONS for row in rows)
