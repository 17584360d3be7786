"""PriorityClasses and RuntimeClasses.

Source: pkg/apis/scheduling/validation (ValidatePriorityClass, ValidatePriorityClassUpdate), pkg/apis/scheduling/v1
(IsKnownSystemPriorityClass); pkg/apis/node/validation (ValidateRuntimeClass, ValidateRuntimeClassUpdate).
"""

from typing import Final

from ipc.k8s.api.errors import FieldError, forbidden
from ipc.k8s.api.v1.scheduling import PriorityClass, RuntimeClass
from ipc.k8s.api.validation.checks import Errors, first_errors, well_formed
from ipc.k8s.api.validation.metadata import validate_metadata
from ipc.k8s.api.validation.names import DNS_LABEL
from ipc.k8s.api.validation.resources import validate_resource_list
from ipc.k8s.scheduling.priority import SYSTEM_CLASSES

HIGHEST_USER_PRIORITY: Final = 10**9
"""Greatest value of a class that is not the system's (HighestUserDefinablePriority)."""
SYSTEM_PREFIX: Final = "system-"


def validate_priority_class(found: PriorityClass) -> tuple[FieldError, ...]:
    """Faults for which Kubernetes would refuse it; () when it is valid. At most MAX_FIELD_ERRORS findings."""
    return first_errors(validate_metadata(found.metadata, "metadata"), _namespace(found), _value(found))


def validate_priority_class_update(new: PriorityClass, old: PriorityClass) -> tuple[FieldError, ...]:
    """Changes from ``old`` to ``new`` that Kubernetes would refuse."""
    attributes = {"value": new.value != old.value, "preemptionPolicy": new.preemption_policy != old.preemption_policy}
    return tuple(forbidden(name, "may not be changed in an update") for name, changed in attributes.items() if changed)


def validate_runtime_class(found: RuntimeClass) -> tuple[FieldError, ...]:
    """Faults for which Kubernetes would refuse a RuntimeClass; () when it is valid."""
    overhead = found.overhead.pod_fixed if found.overhead is not None else {}
    return first_errors(
        validate_metadata(found.metadata, "metadata"),
        _namespace(found),
        well_formed("handler", found.handler, DNS_LABEL.problem),
        validate_resource_list(overhead, "overhead.podFixed"),
    )


def validate_runtime_class_update(new: RuntimeClass, old: RuntimeClass) -> tuple[FieldError, ...]:
    """Changes from ``old`` to ``new`` that Kubernetes would refuse."""
    return (forbidden("handler", "may not be changed in an update"),) if new.handler != old.handler else ()


def _namespace(found: PriorityClass | RuntimeClass) -> Errors:
    if found.metadata.namespace:
        yield forbidden("metadata.namespace", "not allowed on this type")


def _value(found: PriorityClass) -> Errors:
    name = found.metadata.name
    if name.startswith(SYSTEM_PREFIX):
        if problem := _system_class_problem(found):
            yield forbidden("metadata.name", f"names that begin with {SYSTEM_PREFIX} are the system's: {problem}")
    elif found.value > HIGHEST_USER_PRIORITY:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}")


def _system_class_problem(found: PriorityClass) -> str:
    known = SYSTEM_CLASSES.get(found.metadata.name)
    if known is None:
        return f"the known ones are {', '.join(SYSTEM_CLASSES)}"
    if found.value != known:
        return f"its value must be {known}"
    return "its globalDefault must be false" if found.global_default else ""
