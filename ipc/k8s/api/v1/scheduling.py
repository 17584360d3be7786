"""Placement, which a single host decodes and validates, nothing more, and priority (scheduling/v1)."""

from typing import Final, Literal

from msgspec import field

from ipc.k8s.api.v1.base import ApiStruct, Empty, Int32, Int64, ResourceList, always
from ipc.k8s.api.v1.meta import LabelSelector, ObjectMeta

NODE_NAME_FIELD: Final = "metadata.name"
"""The one field of nodes that a selector may name."""
NodeSelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
TolerationOperator = Literal["Exists", "Equal", "Lt", "Gt"]
TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
UnsatisfiableConstraintAction = Literal["DoNotSchedule", "ScheduleAnyway"]
NodeInclusionPolicy = Literal["Honor", "Ignore"]
PreemptionPolicy = Literal["PreemptLowerPriority", "Never"]


class NodeSelectorRequirement(ApiStruct, frozen=True, kw_only=True):
    """One expression over node labels or fields."""

    key: str
    operator: NodeSelectorOperator
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiStruct, frozen=True, kw_only=True):
    """Expressions that must all hold."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiStruct, frozen=True, kw_only=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...]


class PreferredSchedulingTerm(ApiStruct, frozen=True, kw_only=True):
    """A weighted wish."""

    weight: Int32
    preference: NodeSelectorTerm


class NodeAffinity(ApiStruct, frozen=True, kw_only=True):
    """Selection of nodes."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(ApiStruct, frozen=True, kw_only=True):
    """Near which pods, in which topology."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(ApiStruct, frozen=True, kw_only=True):
    """A weighted wish."""

    weight: Int32
    pod_affinity_term: PodAffinityTerm


class PodAffinity(ApiStruct, frozen=True, kw_only=True):
    """Near which pods."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class PodAntiAffinity(ApiStruct, frozen=True, kw_only=True):
    """Far from which pods."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(ApiStruct, frozen=True, kw_only=True):
    """All placement wishes."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class Toleration(ApiStruct, frozen=True, kw_only=True):
    """A taint that the pod tolerates; `toleration_seconds` in seconds."""

    key: str = ""
    operator: TolerationOperator | Empty = ""
    value: str = ""
    effect: TaintEffect | Empty = ""
    toleration_seconds: Int64 | None = None


class Taint(ApiStruct, frozen=True, kw_only=True):
    """A property of the node that pods have to tolerate."""

    key: str
    value: str = ""
    effect: str
    time_added: str = ""


class TopologySpreadConstraint(ApiStruct, frozen=True, kw_only=True):
    """How evenly pods spread over a topology."""

    max_skew: Int32
    topology_key: str
    when_unsatisfiable: UnsatisfiableConstraintAction
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: NodeInclusionPolicy | None = None
    node_taints_policy: NodeInclusionPolicy | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(ApiStruct, frozen=True, kw_only=True):
    """A gate that holds scheduling back."""

    name: str


class PodSchedulingGroup(ApiStruct, frozen=True, kw_only=True):
    """The group a pod is scheduled with."""

    pod_group_name: str | None = None


class PodReadinessGate(ApiStruct, frozen=True, kw_only=True):
    """A further condition that Ready waits for."""

    condition_type: str


class PodResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """A device claim of the pod."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class Overhead(ApiStruct, frozen=True, kw_only=True):
    """Resources that a pod of a class takes beside its containers'."""

    pod_fixed: ResourceList = field(default_factory=dict)


class RuntimeClassScheduling(ApiStruct, frozen=True, kw_only=True):
    """Nodes that have the class."""

    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(ApiStruct, frozen=True, kw_only=True):
    """An OCI runtime under a name, of no namespace: what runs the containers of the pods that name it."""

    api_version: Literal["node.k8s.io/v1"] = always("node.k8s.io/v1")
    kind: Literal["RuntimeClass"] = always("RuntimeClass")
    metadata: ObjectMeta = always(ObjectMeta())
    handler: str
    overhead: Overhead | None = None
    scheduling: RuntimeClassScheduling | None = None


class PriorityClass(ApiStruct, frozen=True, kw_only=True):
    """A number under a name, of no namespace: the priority of the pods that name it."""

    api_version: Literal["scheduling.k8s.io/v1"] = always("scheduling.k8s.io/v1")
    kind: Literal["PriorityClass"] = always("PriorityClass")
    metadata: ObjectMeta = always(ObjectMeta())
    value: Int32
    global_default: bool = False
    """Whether it is also of the pods that name none."""
    description: str = ""
    preemption_policy: PreemptionPolicy | None = None
