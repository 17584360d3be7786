"""Rootlet's support for every field of a v1 Pod: one table of values.

A row speaks for its field and everything below it, unless a row with a longer path speaks for that; rows of
`spec.containers[*]` speak for init and ephemeral containers, too, unless these have a row of their own. To act on a
field, change its row, run `python -m tests.docs.reference`, and nothing else here.
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
    tests: tuple[str, ...] = ()
    """End-to-end tests of a supported field on real Podman, ``file::function`` below ``tests/``, that would fail if it
    were ignored."""


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
_OTHER_NODE: Final = "e2e/test_manifest_fields.py::test_a_pod_for_another_node_is_rejected"
_NEXT_LIFE: Final = "changed in the manifest, it counts from the next start of the container on"
_AT_START: Final = "as the object is when the container starts: a change of it counts from the next start on"
_VALUE_FROM: Final = "spec.containers[*].env[*].valueFrom"
_PROBED_ANEW: Final = "changed in the manifest, it counts at once: the container goes on"
_POD_VOLUME: Final = "it is a Podman volume, made for the pod and removed with it, without size, class or mode"
_NAMED: Final = "e2e/test_host_names_and_dns.py::test_a_host_name_given_instead_of_the_pods"
_SERVERS: Final = "e2e/test_host_names_and_dns.py::test_name_servers"
_INPUT_ENDS: Final = "e2e/test_exec_attach.py::test_an_input_ends_with_the_first_client_and_the_next_is_told"
_PUBLISHED: Final = "e2e/test_host_ports.py::test_ports_are_published"
_SHAPING: Final = (
    "by tc in the pod's own network, where iproute2 and the kernel have it, else with a Warning event; traffic of a "
    "port that Podman's rootlessport publishes does not come by there"
)
_SHAPED: Final = ("e2e/test_bandwidth.py::test_a_pods_traffic_is_held_to_its_annotations",)
_PRIORITY: Final = "a number counts as it is stated, more than that of a class; from 2000000000 on the pod is critical"
_CLASSES: Final = "e2e/test_priority.py::test_pods_have_the_priority_of_their_class"
_NO_HANDLER: Final = "the kubelet takes it and calls it an invalid handler: the hook would fail each time"

_DELEGATED: Final = (
    "cpu and memory, as far as the host delegates these cgroup controllers to the agent's user; a Warning event of the "
    "pod names those that are not enforced"
)
_COUNTED: Final = "counted at admission; of cpu the weight too, where that controller is delegated"
_LIMITED: Final = f"ephemeral-storage: a pod with more on the disk is evicted; {_DELEGATED}"
_RESOURCES: Final = (
    "e2e/test_resources.py::test_a_pod_for_which_there_is_no_room_is_rejected",
    "e2e/test_resources.py::test_limits_hold_or_are_said_not_to",
    "e2e/test_cpu_and_memory_limits.py::test_a_container_has_what_its_limits_say",
    "e2e/test_cpu_and_memory_limits.py::test_requests_of_cpu_are_weights",
    "e2e/test_cpu_and_memory_limits.py::test_who_wants_more_cpu_than_its_limit_waits",
    "e2e/test_cpu_and_memory_limits.py::test_who_takes_more_memory_than_its_limit_is_killed_and_backs_off",
    "e2e/test_resources.py::test_whom_the_kernel_kills_first",
)

OBJECT_ROWS: Final = (
    FieldSupport(
        "apiVersion",
        _YES,
        "must be v1",
        tests=("e2e/test_manifest_fields.py::test_another_kind_or_version_is_refused",),
    ),
    FieldSupport(
        "kind", _YES, "must be Pod", tests=("e2e/test_manifest_fields.py::test_another_kind_or_version_is_refused",)
    ),
    FieldSupport("metadata.name", _YES, tests=("e2e/test_command_line.py::test_apply_wait_get_and_delete",)),
    FieldSupport(
        "metadata.namespace",
        _NOTE,
        "a name only: it keeps pods of one name apart, nothing else",
        tests=("e2e/test_manifest_fields.py::test_what_the_object_states_is_told",),
    ),
    FieldSupport(
        "metadata.uid",
        _NOTE,
        "the pod's identity; made of source, namespace and name when not given",
        tests=("e2e/test_manifest_fields.py::test_what_the_object_states_is_told",),
    ),
    FieldSupport(
        "metadata.labels",
        _YES,
        tests=(
            "e2e/test_manifest_edits.py::test_a_changed_label_touches_no_container",
            "e2e/test_environment.py::test_fields_of_the_pod",
        ),
    ),
    FieldSupport("metadata.annotations", _YES, tests=("e2e/test_environment.py::test_fields_of_the_pod",)),
    FieldSupport(
        "metadata.generation",
        _NOTE,
        "counted here: 1, and one more with each change",
        tests=("e2e/test_manifest_fields.py::test_what_the_object_states_is_told",),
    ),
    FieldSupport(
        "metadata.creationTimestamp",
        _NOTE,
        "when the pod was first seen here",
        tests=("e2e/test_manifest_fields.py::test_what_the_object_states_is_told",),
    ),
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
    FieldSupport(
        "spec.restartPolicy",
        _YES,
        tests=(
            "e2e/test_run_to_completion.py::test_how_it_ended",
            "e2e/test_restart_policies.py::test_on_failure_ends_with_the_first_success",
        ),
    ),
    FieldSupport(
        "spec.terminationGracePeriodSeconds",
        _YES,
        tests=("e2e/test_deletion.py::test_who_ignores_sigterm_is_killed_after_the_grace_period_and_not_before",),
    ),
    FieldSupport(
        "spec.hostNetwork",
        _NOTE,
        "the host's network as the agent's user sees it: no ports below 1024",
        tests=("e2e/test_host_names_and_dns.py::test_the_nodes_hosts_file_in_its_network",),
    ),
    FieldSupport("spec.hostname", _YES, "the pod's name when not given", tests=(_NAMED,)),
    FieldSupport("spec.os.name", _NO, "only Linux containers run here", ("linux",)),
    FieldSupport(
        "spec.initContainers",
        _YES,
        tests=("e2e/test_init_containers.py::test_two_run_in_order_and_then_the_main_container",),
    ),
    FieldSupport(
        "spec.initContainers[*].restartPolicy",
        _NOTE,
        "Always makes a sidecar of it",
        tests=("e2e/test_sidecars.py::test_they_start_in_order_and_end_in_reverse_after_the_main_containers",),
    ),
    FieldSupport(
        "spec.initContainers[*].ports[*].hostPort",
        _WARN,
        "a sidecar reserves it, but only regular containers' ports are published, as upstream",
    ),
    FieldSupport(
        "spec.ephemeralContainers",
        _NOTE,
        "added and changed by editing the manifest, at any time; started at once, never restarted",
        tests=("e2e/test_ephemeral_containers.py::test_it_is_added_to_a_pod_that_runs",),
    ),
    *(FieldSupport(f"spec.volumes[*].{kind}", _NO, f"{what}: {_INSTEAD}") for kind, what in _OTHER_VOLUMES.items()),
    FieldSupport(
        "spec.activeDeadlineSeconds",
        _YES,
        tests=("e2e/test_active_deadline.py::test_a_pod_that_is_active_for_too_long_is_asked_to_stop_and_fails",),
    ),
    FieldSupport(
        "spec.dnsPolicy",
        _NOTE,
        "ClusterFirst and ClusterFirstWithHostNet mean Default unless clusterDNS is configured (docs/network.md)",
        tests=(_SERVERS, "e2e/test_host_names_and_dns.py::test_a_clusters_dns"),
    ),
    FieldSupport("spec.dnsConfig.nameservers", _YES, tests=(_SERVERS,)),
    FieldSupport("spec.dnsConfig.searches", _YES, tests=(_SERVERS,)),
    FieldSupport("spec.dnsConfig.options", _YES, tests=(_SERVERS,)),
    FieldSupport(
        "spec.hostAliases",
        _NOTE,
        "changed in the manifest, they reach containers that run",
        tests=(
            "e2e/test_host_names_and_dns.py::test_every_container_sees_the_managed_hosts_file",
            "e2e/test_host_names_and_dns.py::test_other_aliases_reach_containers_that_run",
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
        tests=("e2e/test_shared_namespaces.py::test_the_hosts_processes",),
    ),
    FieldSupport(
        "spec.hostIPC",
        _NOTE,
        "needs /dev/mqueue on the host, which distributions mount",
        tests=("e2e/test_shared_namespaces.py::test_the_hosts_ipc",),
    ),
    FieldSupport(
        "spec.shareProcessNamespace",
        _YES,
        tests=("e2e/test_shared_namespaces.py::test_one_process_namespace_for_the_pod",),
    ),
    FieldSupport(
        "spec.hostUsers",
        _NOTE,
        "false: ids 0 to 2047 of the pod's own, or as many as it names; all such pods share the user's "
        "subordinate ids, and Podman copies each image for each range",
        tests=("e2e/test_security_context.py::test_pods_with_ids_of_their_own",),
    ),
    FieldSupport(
        "spec.runtimeClassName",
        _YES,
        "the OCI runtime that `runtimes` has for its class's handler makes the containers; a pod waits for its class",
        tests=("e2e/test_runtime_classes.py::test_containers_run_with_the_runtime_of_their_class",),
    ),
    FieldSupport(
        "spec.resources.limits",
        _NOTE,
        f"of the pod's cgroup, where systemd manages them, and of a container without its own; {_DELEGATED}",
        tests=(
            "e2e/test_cpu_and_memory_limits.py::test_a_container_without_limits_has_the_pods",
            "e2e/test_cpu_and_memory_limits.py::test_a_pod_weighs_what_it_asks_for_and_has_its_limits_in_all",
        ),
    ),
    FieldSupport("spec.resources.requests", _NOTE, _COUNTED, tests=_RESOURCES),
    FieldSupport("spec.resources.claims", _NO, "the devices would be missing"),
    FieldSupport("spec.resourceClaims", _NO, "the devices would be missing"),
    FieldSupport(
        "spec.overhead",
        _YES,
        "that of the RuntimeClass, if there is none; counted at admission, no part of the pod's cgroup",
        tests=("e2e/test_runtime_classes.py::test_containers_run_with_the_runtime_of_their_class",),
    ),
    FieldSupport(
        "spec.imagePullSecrets",
        _NOTE,
        "those for an image count instead of the logins of the agent's user; what they pulled is for pods with them",
        tests=("e2e/test_pull_secrets.py::test_a_pod_pulls_with_its_own_logins_and_others_do_not",),
    ),
    FieldSupport("spec.readinessGates", _WARN, "nobody here can set these conditions: the pod never becomes Ready"),
    FieldSupport("spec.schedulingGates", _NO, "a gated pod must not start, and nobody here opens the gate"),
    FieldSupport("spec.priority", _NOTE, _PRIORITY, tests=(_CLASSES,)),
    FieldSupport(
        "spec.priorityClassName",
        _NOTE,
        "the two system classes, and those of PriorityClass documents; of one that is not there the pod has a warning",
        tests=(_CLASSES,),
    ),
    FieldSupport(
        "spec.preemptionPolicy",
        _NA,
        "it speaks to a scheduler: a kubelet's preemption, which is for critical pods, does not ask for it",
        ("Never", "PreemptLowerPriority"),
    ),
    FieldSupport(
        "spec.nodeName",
        _NOTE,
        "overwritten with this node's: every pod of a source of this host is this host's",
        tests=("e2e/test_manifest_fields.py::test_the_node_of_a_manifest_is_overwritten",),
    ),
    FieldSupport("spec.nodeSelector", _NOTE, _NODE_LABELS, tests=(_OTHER_NODE,)),
    FieldSupport(
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        _NOTE,
        _NODE_LABELS,
        tests=(_OTHER_NODE,),
    ),
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
_RIGHTS: Final = "e2e/test_security_context.py"

POD_SECURITY_ROWS: Final = (
    FieldSupport("spec.securityContext.runAsUser", _NOTE, _IDS, tests=(f"{_RIGHTS}::test_user_and_groups_of_the_pod",)),
    FieldSupport(
        "spec.securityContext.runAsGroup", _NOTE, _IDS, tests=(f"{_RIGHTS}::test_user_and_groups_of_the_pod",)
    ),
    FieldSupport(
        "spec.securityContext.runAsNonRoot", _YES, tests=(f"{_RIGHTS}::test_root_is_refused_where_it_may_not_be",)
    ),
    FieldSupport(
        "spec.securityContext.supplementalGroups", _NOTE, _IDS, tests=(f"{_RIGHTS}::test_user_and_groups_of_the_pod",)
    ),
    FieldSupport(
        "spec.securityContext.supplementalGroupsPolicy",
        _NOTE,
        "with a runAsGroup the image's /etc/group adds none, also to Merge; Strict needs one, but for root",
        tests=(f"{_RIGHTS}::test_the_groups_that_the_image_has_for_a_user",),
    ),
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
    FieldSupport(
        "spec.securityContext.sysctls",
        _NOTE,
        "the kubelet's safe ones and those of the setting allowedUnsafeSysctls; with another one the pod fails",
        tests=(f"{_RIGHTS}::test_sysctls_are_set_on_the_sandbox",),
    ),
    FieldSupport(
        "spec.securityContext.seccompProfile.type",
        _NOTE,
        _SECCOMP,
        tests=(f"{_RIGHTS}::test_seccomp_profiles_of_the_pod",),
    ),
    FieldSupport(
        "spec.securityContext.seccompProfile.localhostProfile",
        _NOTE,
        "a file below seccomp in the stateDir",
        tests=(f"{_RIGHTS}::test_seccomp_profiles_of_the_pod",),
    ),
    FieldSupport(
        "spec.securityContext.appArmorProfile",
        _NOTE,
        _APPARMOR,
        tests=(f"{_RIGHTS}::test_apparmor_profiles_are_rejected",),
    ),
    FieldSupport("spec.securityContext.seLinuxOptions", _WARN, _SELINUX),
    FieldSupport("spec.securityContext.seLinuxChangePolicy", _NA, "only says how volumes get the label"),
    FieldSupport("spec.securityContext.windowsOptions", _NO, "only Linux containers run here"),
)

CONTAINER_ROWS: Final = (
    FieldSupport("spec.containers[*].name", _YES, tests=("e2e/test_command_line.py::test_logs",)),
    FieldSupport("spec.containers[*].image", _YES, tests=("e2e/test_images.py::test_a_digest_is_a_name",)),
    FieldSupport(
        "spec.containers[*].imagePullPolicy",
        _YES,
        tests=(
            "e2e/test_images.py::test_always_pulls_again_and_the_other_policies_do_not",
            "e2e/test_images.py::test_never_means_never",
        ),
    ),
    FieldSupport(
        "spec.containers[*].command",
        _YES,
        tests=("e2e/test_environment.py::test_commands_and_arguments_see_them",),
    ),
    FieldSupport(
        "spec.containers[*].args", _YES, tests=("e2e/test_environment.py::test_commands_and_arguments_see_them",)
    ),
    FieldSupport(
        "spec.containers[*].workingDir", _YES, tests=("e2e/test_manifest_fields.py::test_the_working_directory",)
    ),
    FieldSupport(
        "spec.containers[*].env[*].name", _YES, tests=("e2e/test_environment.py::test_values_and_references",)
    ),
    FieldSupport(
        "spec.containers[*].env[*].value", _YES, tests=("e2e/test_environment.py::test_values_and_references",)
    ),
    FieldSupport(
        f"{_VALUE_FROM}.fieldRef",
        _YES,
        tests=(
            "e2e/test_environment.py::test_fields_of_the_pod",
            "e2e/test_environment.py::test_the_address_in_the_hosts_network",
        ),
    ),
    FieldSupport(f"{_VALUE_FROM}.resourceFieldRef", _YES, tests=("e2e/test_environment.py::test_resources",)),
    FieldSupport(
        f"{_VALUE_FROM}.configMapKeyRef",
        _NOTE,
        _AT_START,
        tests=("e2e/test_environment_objects.py::test_keys_of_objects",),
    ),
    FieldSupport(
        f"{_VALUE_FROM}.secretKeyRef",
        _NOTE,
        _AT_START,
        tests=("e2e/test_environment_objects.py::test_keys_of_objects",),
    ),
    FieldSupport(
        f"{_VALUE_FROM}.fileKeyRef",
        _NOTE,
        "as the file is when the container starts",
        tests=(
            "e2e/test_environment_objects.py::test_variables_of_a_file",
            "e2e/test_environment_objects.py::test_variables_of_a_file_that_only_another_user_may_read",
        ),
    ),
    FieldSupport(
        "spec.containers[*].envFrom",
        _NOTE,
        _AT_START,
        tests=(
            "e2e/test_environment_objects.py::test_whole_objects",
            "e2e/test_environment_objects.py::test_a_change_of_an_object_reaches_the_next_life_only",
        ),
    ),
    FieldSupport(
        "spec.containers[*].ports[*].name",
        _YES,
        tests=("e2e/test_port_forward.py::test_several_ports_by_number_and_by_name",),
    ),
    FieldSupport(
        "spec.containers[*].ports[*].containerPort",
        _NOTE,
        "tells, and publishes only with a hostPort",
        tests=("e2e/test_port_forward.py::test_several_ports_by_number_and_by_name",),
    ),
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
        "spec.containers[*].stdin",
        _NOTE,
        "without a tty it ends with the first client that attaches and goes, as if stdinOnce: Podman has no choice. "
        "The next client is told",
        tests=(
            "e2e/test_exec_attach.py::test_attach_feeds_a_container_with_an_input",
            _INPUT_ENDS,
        ),
    ),
    FieldSupport(
        "spec.containers[*].stdinOnce",
        _NOTE,
        "the input ends with any first client, also one that only watched; with a tty never, as with CRI runtimes",
        tests=(_INPUT_ENDS,),
    ),
    FieldSupport(
        "spec.containers[*].tty", _YES, tests=("e2e/test_exec_attach.py::test_attach_to_a_terminal_and_again",)
    ),
    FieldSupport(
        "spec.containers[*].terminationMessagePath",
        _YES,
        tests=("e2e/test_termination_messages.py::test_what_it_said",),
    ),
    FieldSupport(
        "spec.containers[*].terminationMessagePolicy",
        _NOTE,
        _NEXT_LIFE,
        tests=("e2e/test_termination_messages.py::test_what_it_said",),
    ),
    FieldSupport(
        "spec.containers[*].resources.limits",
        _NOTE,
        _LIMITED,
        tests=(*_RESOURCES, "e2e/test_evictions.py::test_a_container_beyond_its_limit_ends_its_pod"),
    ),
    FieldSupport("spec.containers[*].resources.requests", _NOTE, _COUNTED, tests=_RESOURCES),
    FieldSupport("spec.containers[*].resources.claims", _NO, "the devices would be missing"),
    FieldSupport(
        "spec.containers[*].resizePolicy[*].resourceName",
        _YES,
        tests=("e2e/test_resize.py::test_a_container_that_asks_for_it_is_restarted",),
    ),
    FieldSupport(
        "spec.containers[*].resizePolicy[*].restartPolicy",
        _NOTE,
        "without a delegated controller, and where the QoS class would change, NotRequired restarts the container too",
        tests=(
            "e2e/test_resize.py::test_more_and_less_without_another_container",
            "e2e/test_resize.py::test_a_container_that_asks_for_it_is_restarted",
        ),
    ),
    FieldSupport(
        "spec.containers[*].restartPolicy",
        _YES,
        "the pod's when not given",
        tests=("e2e/test_restart_policies.py::test_a_containers_own_policy_counts_more_than_the_pods",),
    ),
    FieldSupport(
        "spec.containers[*].restartPolicyRules",
        _YES,
        tests=(
            "e2e/test_restart_policies.py::test_an_exit_code_with_a_rule_restarts_what_is_never_restarted_otherwise",
            "e2e/test_restart_policies.py::test_a_rule_restarts_all_containers_in_their_sandbox",
            "e2e/test_restart_policies.py::test_a_rule_of_a_sidecar_restarts_all_containers",
        ),
    ),
    FieldSupport("spec.containers[*].volumeDevices", _NO, "a rootless user has no block devices to give"),
    FieldSupport(
        "spec.containers[*].livenessProbe",
        _NOTE,
        _PROBED_ANEW,
        tests=(
            "e2e/test_probes.py::test_each_parameter_of_each_handler",
            "e2e/test_probes.py::test_each_number",
        ),
    ),
    FieldSupport(
        "spec.containers[*].readinessProbe",
        _NOTE,
        _PROBED_ANEW,
        tests=(
            "e2e/test_probes.py::test_each_parameter_of_each_handler",
            "e2e/test_probes.py::test_readiness_takes_so_many_answers_in_a_row",
        ),
    ),
    FieldSupport(
        "spec.containers[*].startupProbe",
        _NOTE,
        _PROBED_ANEW,
        tests=(
            "e2e/test_probes.py::test_each_parameter_of_each_handler",
            "e2e/test_probes.py::test_each_number",
        ),
    ),
    FieldSupport(
        "spec.containers[*].lifecycle.postStart.exec",
        _YES,
        tests=("e2e/test_hooks.py::test_a_post_start_command_runs_once_the_container_runs",),
    ),
    FieldSupport(
        "spec.containers[*].lifecycle.postStart.sleep",
        _YES,
        tests=("e2e/test_hooks.py::test_a_pod_that_goes_does_not_wait_for_its_post_start_hook",),
    ),
    FieldSupport(
        "spec.containers[*].lifecycle.postStart.httpGet",
        _YES,
        tests=("e2e/test_http_hooks.py::test_hooks_are_requests_to_the_pod",),
    ),
    FieldSupport("spec.containers[*].lifecycle.postStart.tcpSocket", _NO, _NO_HANDLER),
    FieldSupport(
        "spec.containers[*].lifecycle.preStop.exec",
        _YES,
        tests=("e2e/test_hooks.py::test_a_pre_stop_command_runs_before_the_stop_signal",),
    ),
    FieldSupport(
        "spec.containers[*].lifecycle.preStop.sleep",
        _YES,
        tests=("e2e/test_hooks.py::test_a_pre_stop_hook_may_just_wait",),
    ),
    FieldSupport(
        "spec.containers[*].lifecycle.preStop.httpGet",
        _YES,
        tests=("e2e/test_http_hooks.py::test_hooks_are_requests_to_the_pod",),
    ),
    FieldSupport("spec.containers[*].lifecycle.preStop.tcpSocket", _NO, _NO_HANDLER),
    FieldSupport(
        "spec.containers[*].lifecycle.stopSignal",
        _NOTE,
        _NEXT_LIFE,
        tests=("e2e/test_hooks.py::test_the_stop_signal_is_the_manifests",),
    ),
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
        tests=(
            "e2e/test_volumes.py::test_an_empty_dir_outlives_its_containers_and_not_its_pod",
            "e2e/test_volumes.py::test_memory_is_limited_and_shared",
            "e2e/test_evictions.py::test_an_empty_dir_beyond_its_size_ends_its_pod_for_good",
        ),
    ),
    FieldSupport(
        "spec.volumes[*].hostPath",
        _NOTE,
        "what the agent's user may read and write, as root of the pod; a path of no type that is not there becomes a "
        "directory; a relative one is refused",
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
        "what its document is bound to; without one the Podman volume of its name, made when absent and never removed",
        tests=(
            "e2e/test_persistent_volumes.py::test_a_claim_is_bound_and_mounted_and_the_binding_outlives_kill_9",
            "e2e/test_volumes.py::test_a_claim_is_a_podman_volume_that_stays",
        ),
    ),
    FieldSupport("spec.volumes[*].ephemeral.volumeClaimTemplate.metadata", _NA, _POD_VOLUME),
    FieldSupport("spec.volumes[*].ephemeral.volumeClaimTemplate.spec", _NA, _POD_VOLUME),
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
        tests=(
            "e2e/test_volume_propagation.py::test_a_mount_reaches_those_that_want_it",
            "e2e/test_volume_propagation.py::test_a_mount_of_a_privileged_container_reaches_others",
        ),
    ),
    FieldSupport(
        f"{_MOUNT}.subPath",
        _NOTE,
        "not of a claim on a volume with a driver or options of its own",
        tests=("e2e/test_sub_paths.py::test_parts_of_volumes", "e2e/test_sub_paths.py::test_parts_of_an_image"),
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
    FieldSupport(
        "spec.volumes[*].projected.sources[*].podCertificate", _NO, "nobody here asks for certificates of pods"
    ),
)

_CONTEXT: Final = "spec.containers[*].securityContext"

CONTAINER_SECURITY_ROWS: Final = (
    FieldSupport(
        f"{_CONTEXT}.runAsUser",
        _NOTE,
        _IDS,
        tests=(f"{_RIGHTS}::test_user_and_group_of_the_container_count_before_the_pods",),
    ),
    FieldSupport(
        f"{_CONTEXT}.runAsGroup",
        _NOTE,
        _IDS,
        tests=(f"{_RIGHTS}::test_user_and_group_of_the_container_count_before_the_pods",),
    ),
    FieldSupport(f"{_CONTEXT}.runAsNonRoot", _YES, tests=(f"{_RIGHTS}::test_root_is_refused_where_it_may_not_be",)),
    FieldSupport(
        f"{_CONTEXT}.privileged",
        _NOTE,
        _PRIVILEGED,
        tests=(f"{_RIGHTS}::test_privileged_is_what_a_rootless_host_can_give",),
    ),
    FieldSupport(f"{_CONTEXT}.allowPrivilegeEscalation", _YES, tests=(f"{_RIGHTS}::test_privileges_are_not_gained",)),
    FieldSupport(
        f"{_CONTEXT}.readOnlyRootFilesystem",
        _NOTE,
        "writable are volumes and the termination message; /dev/shm only with Podman before 4.7",
        tests=(f"{_RIGHTS}::test_a_read_only_root",),
    ),
    FieldSupport(
        f"{_CONTEXT}.capabilities.add",
        _NOTE,
        "they reach over the container's own namespaces, and to users that are not root too",
        tests=(f"{_RIGHTS}::test_capabilities_are_added_and_dropped",),
    ),
    FieldSupport(
        f"{_CONTEXT}.capabilities.drop",
        _NOTE,
        "from Podman's default ones, which are containerd's without AUDIT_WRITE, MKNOD and NET_RAW",
        tests=(f"{_RIGHTS}::test_capabilities_are_added_and_dropped",),
    ),
    FieldSupport(
        f"{_CONTEXT}.procMount", _YES, tests=(f"{_RIGHTS}::test_proc_is_unmasked_only_where_it_was_asked_for",)
    ),
    FieldSupport(
        f"{_CONTEXT}.seccompProfile.type",
        _NOTE,
        _SECCOMP,
        tests=(f"{_RIGHTS}::test_seccomp_profiles_of_the_container_count_before_the_pods",),
    ),
    FieldSupport(
        f"{_CONTEXT}.seccompProfile.localhostProfile",
        _NOTE,
        "a file below seccomp in the stateDir",
        tests=(f"{_RIGHTS}::test_seccomp_profiles_of_the_container_count_before_the_pods",),
    ),
    FieldSupport(
        f"{_CONTEXT}.appArmorProfile", _NOTE, _APPARMOR, tests=(f"{_RIGHTS}::test_apparmor_profiles_are_rejected",)
    ),
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
    FieldSupport("metadata.annotations[kubernetes.io/ingress-bandwidth]", _NOTE, _SHAPING, tests=_SHAPED),
    FieldSupport("metadata.annotations[kubernetes.io/egress-bandwidth]", _NOTE, _SHAPING, tests=_SHAPED),
)
"""Annotations that ask a node for something, which others do not. No finding is made of them."""
