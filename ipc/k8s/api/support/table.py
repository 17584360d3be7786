"""Rootlet's support for every field of a v1 Pod: one table of values.

A row speaks for its field and everything below it, unless a row with a longer path speaks for that; rows of
`spec.containers[*]` speak for init and ephemeral containers, too, unless these have a row of their own. To act on a
field, change its row and run `python -m tests.docs.reference`; `tests/pod_field_tests.toml` has its end-to-end tests.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import msgspec


class Support(Enum):
    """Support level of a field that is set."""

    SUPPORTED = "supported"
    SUPPORTED_WITH_NOTE = "supported, with a note"
    WARNED = "warned"
    """Not acted on yet: the pod is admitted with a warning event."""
    REFUSED = "refused"
    """Running without it would be wrong or unsafe: the manifest is refused, as with a wrong value."""
    NOT_APPLICABLE = "not applicable"
    """Speaks to a cluster and asks nothing of a host: the pod is admitted with one warning that names all of them."""


class FieldSupport(msgspec.Struct, frozen=True):
    """One row. `accepted` are values of a field not acted on that are as good as acted on."""

    path: str
    support: Support
    why: str = ""
    accepted: tuple[Any, ...] = ()


_YES: Final = Support.SUPPORTED
_NOTE: Final = Support.SUPPORTED_WITH_NOTE
_WARN: Final = Support.WARNED
_NO: Final = Support.REFUSED
_NA: Final = Support.NOT_APPLICABLE

_ONE_NODE: Final = "there is one node and no scheduler"
_NODE_LABELS: Final = (
    "the node's labels are kubernetes.io/hostname, kubernetes.io/os, kubernetes.io/arch and those of the setting "
    "nodeLabels; a pod that asks for another node fails with reason NodeAffinity"
)
_NEXT_LIFE: Final = "changed in the manifest, it counts from the next start of the container on"
_AT_START: Final = "as the object is when the container starts: a change of it counts from the next start on"
_VALUE_FROM: Final = "spec.containers[*].env[*].valueFrom"
_PROBED_ANEW: Final = "changed in the manifest, it counts at once: the container goes on"
_POD_VOLUME: Final = "it is a Podman volume, made for the pod and removed with it, without size, class or mode"
_SHAPING: Final = (
    "by tc in the pod's own network, where iproute2 and the kernel have it, else with a Warning event; traffic of a "
    "port that Podman's rootlessport publishes does not come by there"
)
_PRIORITY: Final = "a number counts as it is stated, more than that of a class; from 2000000000 on the pod is critical"
_NO_HANDLER: Final = "the kubelet takes it and calls it an invalid handler: the hook would fail each time"

_DELEGATED: Final = (
    "cpu and memory, as far as the host delegates these cgroup controllers to the agent's user; a Warning event of the "
    "pod names those that are not enforced"
)
_COUNTED: Final = "counted at admission; of cpu the weight too, where that controller is delegated"
_LIMITED: Final = f"ephemeral-storage: a pod with more on the disk is evicted; {_DELEGATED}"

OBJECT_ROWS: Final = (
    FieldSupport("apiVersion", _YES, "must be v1"),
    FieldSupport("kind", _YES, "must be Pod"),
    FieldSupport("metadata.name", _YES),
    FieldSupport("metadata.namespace", _NOTE, "a name only: it keeps pods of one name apart, nothing else"),
    FieldSupport("metadata.uid", _NOTE, "the pod's identity; made of source, namespace and name when not given"),
    FieldSupport("metadata.labels", _YES),
    FieldSupport("metadata.annotations", _YES),
    FieldSupport("metadata.generation", _NOTE, "counted here: 1, and one more with each change"),
    FieldSupport("metadata.creationTimestamp", _NOTE, "when the pod was first seen here"),
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

_INSTEAD: Final = "mount it on the host and use a hostPath volume, or use emptyDir, or a persistentVolumeClaim"
_OTHER_VOLUMES: Final[Mapping[str, str]] = {
    "nfs": "mounting NFS takes root",
    "iscsi": "attaching iSCSI disks takes root",
    "fc": "attaching Fibre Channel disks takes root",
    "rbd": "attaching Ceph's block devices takes root",
    "cephfs": "mounting CephFS takes root",
    "glusterfs": "mounting GlusterFS takes root, and Kubernetes has dropped it",
    "gitRepo": "Kubernetes has dropped it; an init container can clone into an emptyDir volume",
    "flexVolume": "there are no FlexVolume drivers here",
    "csi": "there are no CSI drivers here",
    **dict.fromkeys(
        (
            "gcePersistentDisk",
            "awsElasticBlockStore",
            "azureDisk",
            "azureFile",
            "cinder",
            "vsphereVolume",
            "photonPersistentDisk",
            "portworxVolume",
            "scaleIO",
            "storageos",
            "quobyte",
            "flocker",
        ),
        "a cloud's or storage vendor's volumes are not attached here",
    ),
}
"""Why each kind of volume is not there, by its name in a volume."""

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
    *(FieldSupport(f"spec.volumes[*].{kind}", _NO, f"{what}: {_INSTEAD}") for kind, what in _OTHER_VOLUMES.items()),
    FieldSupport("spec.activeDeadlineSeconds", _YES),
    FieldSupport(
        "spec.dnsPolicy",
        _NOTE,
        "ClusterFirst and ClusterFirstWithHostNet mean Default unless clusterDNS is configured (docs/network.md)",
    ),
    FieldSupport("spec.dnsConfig.nameservers", _YES),
    FieldSupport("spec.dnsConfig.searches", _YES),
    FieldSupport("spec.dnsConfig.options", _YES),
    FieldSupport("spec.hostAliases", _NOTE, "changed in the manifest, they reach containers that run"),
    FieldSupport("spec.hostnameOverride", _YES),
    FieldSupport(
        "spec.subdomain",
        _NOTE,
        "names the pod in its own hosts file, and on a bridge with DNS; without clusterDomain the domain ends in svc",
    ),
    FieldSupport("spec.setHostnameAsFQDN", _YES),
    FieldSupport(
        "spec.hostPID", _NOTE, "the host's processes are seen; only those of this user, as it may, can be reached"
    ),
    FieldSupport("spec.hostIPC", _NOTE, "needs /dev/mqueue on the host, which distributions mount"),
    FieldSupport("spec.shareProcessNamespace", _YES),
    FieldSupport(
        "spec.hostUsers",
        _NOTE,
        "false: ids 0 to 2047 of the pod's own, or as many as it names; all such pods share the user's "
        "subordinate ids, and Podman copies each image for each range",
    ),
    FieldSupport(
        "spec.runtimeClassName",
        _YES,
        "the OCI runtime that `runtimes` has for its class's handler makes the containers; a pod waits for its class",
    ),
    FieldSupport(
        "spec.resources.limits",
        _NOTE,
        f"of the pod's cgroup, where systemd manages them, and of a container without its own; {_DELEGATED}",
    ),
    FieldSupport("spec.resources.requests", _NOTE, _COUNTED),
    FieldSupport("spec.resources.claims", _NO, "the devices would be missing"),
    FieldSupport("spec.resourceClaims", _NO, "the devices would be missing"),
    FieldSupport(
        "spec.overhead",
        _YES,
        "that of the RuntimeClass, if there is none; counted at admission, no part of the pod's cgroup",
    ),
    FieldSupport(
        "spec.imagePullSecrets",
        _NOTE,
        "those for an image count instead of the logins of the agent's user; what they pulled is for pods with them",
    ),
    FieldSupport("spec.readinessGates", _WARN, "nobody here can set these conditions: the pod never becomes Ready"),
    FieldSupport("spec.schedulingGates", _NO, "a gated pod must not start, and nobody here opens the gate"),
    FieldSupport("spec.priority", _NOTE, _PRIORITY),
    FieldSupport(
        "spec.priorityClassName",
        _NOTE,
        "the two system classes, and those of PriorityClass documents; of one that is not there the pod has a warning",
    ),
    FieldSupport(
        "spec.preemptionPolicy",
        _NA,
        "it speaks to a scheduler: a kubelet's preemption, which is for critical pods, does not ask for it",
        ("Never", "PreemptLowerPriority"),
    ),
    FieldSupport(
        "spec.nodeName", _NOTE, "overwritten with this node's: every pod of a source of this host is this host's"
    ),
    FieldSupport("spec.nodeSelector", _NOTE, _NODE_LABELS),
    FieldSupport("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", _NOTE, _NODE_LABELS),
    FieldSupport("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", _NA, _ONE_NODE),
    FieldSupport("spec.affinity.podAffinity", _NA, _ONE_NODE),
    FieldSupport("spec.affinity.podAntiAffinity", _NA, _ONE_NODE),
    FieldSupport("spec.tolerations", _NA, _ONE_NODE),
    FieldSupport("spec.topologySpreadConstraints", _NA, _ONE_NODE),
    FieldSupport("spec.schedulerName", _NA, _ONE_NODE, ("default-scheduler",)),
    FieldSupport("spec.schedulingGroup", _NA, _ONE_NODE),
    FieldSupport("spec.serviceAccountName", _NA, "there is no API server to be known to", ("default",)),
    FieldSupport("spec.serviceAccount", _NA, "there is no API server to be known to", ("default",)),
    FieldSupport("spec.automountServiceAccountToken", _NA, "there is no API server to be known to", (False,)),
    FieldSupport("spec.enableServiceLinks", _NA, "there are no services", (True, False)),
)

_IDS: Final = (
    "rootless containers have the ids of the agent's user in /etc/subuid and /etc/subgid, from 0 on, and no others"
)
_PRIVILEGED: Final = (
    "all rights that the agent's user has: over the container's own namespaces, and on devices that are its own"
)
_SECCOMP: Final = "without one it is Podman's default profile (setting seccompDefault); a privileged container has none"
_APPARMOR: Final = "rootless containers are Unconfined: a pod that asks for anything else fails with reason AppArmor"
_SELINUX: Final = (
    "passed on to Podman, which sets it where the host has SELinux and ignores it elsewhere; not tested there"
)

POD_SECURITY_ROWS: Final = (
    FieldSupport("spec.securityContext.runAsUser", _NOTE, _IDS),
    FieldSupport("spec.securityContext.runAsGroup", _NOTE, _IDS),
    FieldSupport("spec.securityContext.runAsNonRoot", _YES),
    FieldSupport("spec.securityContext.supplementalGroups", _NOTE, _IDS),
    FieldSupport(
        "spec.securityContext.supplementalGroupsPolicy",
        _NOTE,
        "with a runAsGroup the image's /etc/group adds none, also to Merge; Strict needs one, but for root",
    ),
    FieldSupport(
        "spec.securityContext.fsGroup",
        _NOTE,
        "a group of the agent's user namespace: 0 to 65535, as a rule; not of hostPath and image volumes, as upstream",
    ),
    FieldSupport(
        "spec.securityContext.fsGroupChangePolicy", _YES, "of claims: nothing else keeps its files, as upstream"
    ),
    FieldSupport(
        "spec.securityContext.sysctls",
        _NOTE,
        "the kubelet's safe ones and those of the setting allowedUnsafeSysctls; with another one the pod fails",
    ),
    FieldSupport("spec.securityContext.seccompProfile.type", _NOTE, _SECCOMP),
    FieldSupport("spec.securityContext.seccompProfile.localhostProfile", _NOTE, "a file below seccomp in the stateDir"),
    FieldSupport("spec.securityContext.appArmorProfile", _NOTE, _APPARMOR),
    FieldSupport("spec.securityContext.seLinuxOptions", _WARN, _SELINUX),
    FieldSupport("spec.securityContext.seLinuxChangePolicy", _NA, "only says how volumes get the label"),
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
    FieldSupport(f"{_VALUE_FROM}.fieldRef", _YES),
    FieldSupport(f"{_VALUE_FROM}.resourceFieldRef", _YES),
    FieldSupport(f"{_VALUE_FROM}.configMapKeyRef", _NOTE, _AT_START),
    FieldSupport(f"{_VALUE_FROM}.secretKeyRef", _NOTE, _AT_START),
    FieldSupport(f"{_VALUE_FROM}.fileKeyRef", _NOTE, "as the file is when the container starts"),
    FieldSupport("spec.containers[*].envFrom", _NOTE, _AT_START),
    FieldSupport("spec.containers[*].ports[*].name", _YES),
    FieldSupport("spec.containers[*].ports[*].containerPort", _NOTE, "tells, and publishes only with a hostPort"),
    FieldSupport(
        "spec.containers[*].ports[*].hostPort",
        _NOTE,
        "one below net.ipv4.ip_unprivileged_port_start is not this user's to give: such a pod is rejected",
    ),
    FieldSupport("spec.containers[*].ports[*].hostIP", _YES),
    FieldSupport(
        "spec.containers[*].ports[*].protocol",
        _NOTE,
        "rootless Podman cannot publish SCTP: with a hostPort such a pod is rejected",
    ),
    FieldSupport(
        "spec.containers[*].stdin",
        _NOTE,
        "without a tty it ends with the first client that attaches and goes, as if stdinOnce: Podman has no choice. "
        "The next client is told",
    ),
    FieldSupport(
        "spec.containers[*].stdinOnce",
        _NOTE,
        "the input ends with any first client, also one that only watched; with a tty never, as with CRI runtimes",
    ),
    FieldSupport("spec.containers[*].tty", _YES),
    FieldSupport("spec.containers[*].terminationMessagePath", _YES),
    FieldSupport("spec.containers[*].terminationMessagePolicy", _NOTE, _NEXT_LIFE),
    FieldSupport("spec.containers[*].resources.limits", _NOTE, _LIMITED),
    FieldSupport("spec.containers[*].resources.requests", _NOTE, _COUNTED),
    FieldSupport("spec.containers[*].resources.claims", _NO, "the devices would be missing"),
    FieldSupport("spec.containers[*].resizePolicy[*].resourceName", _YES),
    FieldSupport(
        "spec.containers[*].resizePolicy[*].restartPolicy",
        _NOTE,
        "without a delegated controller, and where the QoS class would change, NotRequired restarts the container too",
    ),
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
_ALPHA: Final = "it is alpha in Kubernetes 1.37, where a kubelet has it by a feature gate only"
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_OF_OBJECTS: Final = ("configMap", "secret", "downwardAPI")
ALPHA_ROWS: Final = (
    FieldSupport("spec.volumes[*].emptyDir.mode", _NO, f"{_ALPHA}; a directory has mode 0777 here", (0o777,)),
    FieldSupport(f"{_MOUNT}.bindMountOptions", _NO, f"{_ALPHA}; the mount would allow what they forbid"),
    *(
        FieldSupport(f"spec.containers[*].{of}.httpGet.protocol", _NO, f"{_ALPHA}; requests are HTTP/1.1 here")
        for of in (*_PROBES, "lifecycle.postStart", "lifecycle.preStop")
    ),
    *(
        FieldSupport(f"spec.containers[*].{of}.grpc.mode", _NO, f"{_ALPHA}; probes by gRPC go without TLS here")
        for of in _PROBES
    ),
    *(
        FieldSupport(
            f"spec.volumes[*].{of}.defaultUser", _NO, f"{_ALPHA}; files are root's, or the pod's group's, here"
        )
        for of in (*_OF_OBJECTS, "projected")
    ),
    *(
        FieldSupport(f"spec.volumes[*].{of}.user", _NO, f"{_ALPHA}; files are root's, or the pod's group's, here")
        for of in (
            *(f"{of}.items[*]" for of in _OF_OBJECTS),
            *(f"projected.sources[*].{of}.items[*]" for of in _OF_OBJECTS),
            *(
                f"projected.sources[*].{of}" for of in ("serviceAccountToken", "clusterTrustBundle")
            ),  # of a cluster's pods
        )
    ),
)

VOLUME_ROWS: Final = (
    FieldSupport(
        "spec.volumes[*].emptyDir",
        _NOTE,
        "what a volume without a source is, too; medium HugePages is refused: a rootless user has none to give; "
        "sizeLimit is where a tmpfs ends; a pod with more on the disk is evicted",
    ),
    FieldSupport(
        "spec.volumes[*].hostPath",
        _NOTE,
        "what the agent's user may read and write, as root of the pod; a path of no type that is not there becomes a "
        "directory; a relative one is refused",
    ),
    FieldSupport("spec.volumes[*].hostPath.type", _YES),
    FieldSupport("spec.volumes[*].image", _YES),
    FieldSupport("spec.volumes[*].image.pullPolicy", _YES),
    FieldSupport(
        "spec.volumes[*].persistentVolumeClaim",
        _NOTE,
        "what its document is bound to; without one the Podman volume of its name, made when absent and never removed",
    ),
    FieldSupport("spec.volumes[*].ephemeral.volumeClaimTemplate.metadata", _NA, _POD_VOLUME),
    FieldSupport("spec.volumes[*].ephemeral.volumeClaimTemplate.spec", _NA, _POD_VOLUME),
    FieldSupport(f"{_MOUNT}.name", _YES),
    FieldSupport(f"{_MOUNT}.mountPath", _YES),
    FieldSupport(f"{_MOUNT}.readOnly", _YES),
    FieldSupport(f"{_MOUNT}.recursiveReadOnly", _YES, "needs Linux 5.12; IfPossible is as Enabled"),
    FieldSupport(
        f"{_MOUNT}.mountPropagation",
        _NOTE,
        "with the mounts of Podman's mount namespace, which gets those of the host and gives it none",
    ),
    FieldSupport(f"{_MOUNT}.subPath", _NOTE, "not of a claim on a volume with a driver or options of its own"),
    FieldSupport(f"{_MOUNT}.subPathExpr", _NOTE, "as subPath"),
)

_NO_SERVER: Final = "there is no API server to ask for it"

OBJECT_VOLUME_ROWS: Final = (
    FieldSupport("spec.volumes[*].name", _YES),
    FieldSupport("spec.volumes[*].configMap", _YES),
    FieldSupport("spec.volumes[*].configMap.optional", _YES),
    FieldSupport(
        "spec.volumes[*].secret",
        _NOTE,
        "written to memoryDir, which has to be a file system in memory; whether that is swapped is the host's business",
    ),
    FieldSupport("spec.volumes[*].secret.optional", _YES),
    FieldSupport("spec.volumes[*].downwardAPI", _YES),
    FieldSupport("spec.volumes[*].projected.defaultMode", _YES),
    FieldSupport("spec.volumes[*].projected.sources[*].configMap", _YES),
    FieldSupport("spec.volumes[*].projected.sources[*].downwardAPI", _YES),
    FieldSupport("spec.volumes[*].projected.sources[*].secret", _NOTE, "as a volume of its kind"),
    FieldSupport("spec.volumes[*].projected.sources[*].serviceAccountToken", _NO, _NO_SERVER),
    FieldSupport("spec.volumes[*].projected.sources[*].clusterTrustBundle", _NO, _NO_SERVER),
    FieldSupport(
        "spec.volumes[*].projected.sources[*].podCertificate", _NO, "nobody here asks for certificates of pods"
    ),
)

_CONTEXT: Final = "spec.containers[*].securityContext"

CONTAINER_SECURITY_ROWS: Final = (
    FieldSupport(f"{_CONTEXT}.runAsUser", _NOTE, _IDS),
    FieldSupport(f"{_CONTEXT}.runAsGroup", _NOTE, _IDS),
    FieldSupport(f"{_CONTEXT}.runAsNonRoot", _YES),
    FieldSupport(f"{_CONTEXT}.privileged", _NOTE, _PRIVILEGED),
    FieldSupport(f"{_CONTEXT}.allowPrivilegeEscalation", _YES),
    FieldSupport(
        f"{_CONTEXT}.readOnlyRootFilesystem",
        _NOTE,
        "writable are volumes and the termination message; /dev/shm only with Podman before 4.7",
    ),
    FieldSupport(
        f"{_CONTEXT}.capabilities.add",
        _NOTE,
        "they reach over the container's own namespaces, and to users that are not root too",
    ),
    FieldSupport(
        f"{_CONTEXT}.capabilities.drop",
        _NOTE,
        "from Podman's default ones, which are containerd's without AUDIT_WRITE, MKNOD and NET_RAW",
    ),
    FieldSupport(f"{_CONTEXT}.procMount", _YES),
    FieldSupport(f"{_CONTEXT}.seccompProfile.type", _NOTE, _SECCOMP),
    FieldSupport(f"{_CONTEXT}.seccompProfile.localhostProfile", _NOTE, "a file below seccomp in the stateDir"),
    FieldSupport(f"{_CONTEXT}.appArmorProfile", _NOTE, _APPARMOR),
    FieldSupport(f"{_CONTEXT}.seLinuxOptions", _WARN, _SELINUX),
    FieldSupport(f"{_CONTEXT}.windowsOptions", _NO, "only Linux containers run here"),
)

SECTIONS: Final = (
    ("The object", OBJECT_ROWS),
    ("The pod", POD_ROWS),
    ("The pod's security context", POD_SECURITY_ROWS),
    ("Containers", CONTAINER_ROWS),
    ("Volumes", VOLUME_ROWS),
    ("Volumes of objects", OBJECT_VOLUME_ROWS),
    ("Alpha fields of Kubernetes 1.37", ALPHA_ROWS),
    ("A container's security context", CONTAINER_SECURITY_ROWS),
)
ROWS: Final = tuple(row for _, rows in SECTIONS for row in rows)

ANNOTATION_ROWS: Final = (
    FieldSupport("metadata.annotations[kubernetes.io/ingress-bandwidth]", _NOTE, _SHAPING),
    FieldSupport("metadata.annotations[kubernetes.io/egress-bandwidth]", _NOTE, _SHAPING),
)
"""Annotations that ask a node for something, which others do not. No finding is made of them."""
