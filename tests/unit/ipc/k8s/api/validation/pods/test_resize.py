"""Changes that no resize may make, in upstream's words (pkg/apis/core/validation, ValidatePodResize)."""

from __future__ import annotations

import pytest

from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.validation.pods.resize import validate_pod_resize
from tests.support.pods import container, pod

FORBIDDEN = "Forbidden: {} may not be {} on resize"


def sized(name: str, cpu: str = "1") -> Container:
    return container(name, resources=ResourceRequirements(requests={"cpu": cpu}))


def said(before: Pod, after: Pod) -> list[str]:
    return [str(error) for error in validate_pod_resize(before, after)]


@pytest.mark.parametrize(
    ("after", "wrong"),
    [
        (("a", "b"), []),
        (("b", "a"), ["{}[0].name: renamed or reordered", "{}[1].name: renamed or reordered"]),
        (("a", "c"), ["{}[1].name: renamed or reordered"]),
        (("a",), ["{}: added or removed"]),
        (("a", "b", "c"), ["{}: added or removed"]),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_containers_are_the_same_in_the_same_order(field: str, after: tuple[str, ...], wrong: list[str]) -> None:
    before = tuple(map(sized, ("a", "b")))
    resized = tuple(sized(name, "2") for name in after)
    if field == "containers":
        found = said(pod(*before), pod(*resized))
    else:
        found = said(pod("main", init_containers=before), pod("main", init_containers=resized))
    parted = [line.format(f"spec.{field}").split(": ") for line in wrong]
    assert found == [f"{path}: {FORBIDDEN.format(field, what)}" for path, what in parted]


def test_nothing_else_is_said_of_containers_that_are_not_where_they_were() -> None:
    """The rest compares them by their place."""
    before = pod(sized("a"), container("b", resources=ResourceRequirements(limits={"example.com/gpu": "1"})))
    (only,) = said(before, pod(sized("c"), before.spec.containers[1]))
    assert only == f"spec.containers[0].name: {FORBIDDEN.format('containers', 'renamed or reordered')}"
