"""Refusals about the mounts of containers."""

from typing import Any

import pytest

from tests.support.api_manifests import findings, manifest

MAIN = "spec.containers[0]"
PVC = {"name": "disk", "persistentVolumeClaim": {"claimName": "c"}}
MOUNTS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("fine", {"volumeMounts": [{"name": "data", "mountPath": "/a", "subPath": "x/y"}]}, []),
    (
        "missing volumes",
        {
            "volumeMounts": [{"name": "gone", "mountPath": "/a"}, {"name": "", "mountPath": "/b"}],
            "volumeDevices": [{"name": "gone", "devicePath": "/dev/x"}],
        },
        [
            f'{MAIN}.volumeMounts[0].name: Not found: "gone"',
            f"{MAIN}.volumeMounts[1].name: Required value",
            f'{MAIN}.volumeDevices[0].name: Not found: "gone"',
            f'{MAIN}.volumeDevices[0].name: Invalid value: "gone": is already mounted in volumeMounts',
        ],
    ),
    (
        "paths",
        {
            "volumeMounts": [
                {"name": "data", "mountPath": "/a"},
                {"name": "data", "mountPath": "/a"},
                {"name": "data", "mountPath": ""},
                {"name": "data", "mountPath": "/b", "subPath": "/x"},
                {"name": "data", "mountPath": "/c", "subPathExpr": "$(A)/.."},
                {"name": "data", "mountPath": "/d", "subPath": "x", "subPathExpr": "y"},
            ]
        },
        [
            f'{MAIN}.volumeMounts[1].mountPath: Duplicate value: "/a"',
            f"{MAIN}.volumeMounts[2].mountPath: Required value",
            f'{MAIN}.volumeMounts[3].subPath: Invalid value: "/x": must be a relative path',
            f"{MAIN}.volumeMounts[4].subPathExpr: Invalid value: \"$(A)/..\": must not contain '..'",
            f"{MAIN}.volumeMounts[5].subPathExpr: Forbidden: may not be set together with subPath",
        ],
    ),
    (
        "propagation",
        {
            "volumeMounts": [
                {"name": "data", "mountPath": "/a", "mountPropagation": "Bidirectional"},
                {"name": "data", "mountPath": "/b", "recursiveReadOnly": "Enabled"},
                {
                    "name": "data",
                    "mountPath": "/c",
                    "readOnly": True,
                    "recursiveReadOnly": "IfPossible",
                    "mountPropagation": "HostToContainer",
                },
                {"name": "data", "mountPath": "/d", "recursiveReadOnly": "Disabled"},
            ]
        },
        [
            f"{MAIN}.volumeMounts[0].mountPropagation: Forbidden: Bidirectional needs a privileged container",
            f"{MAIN}.volumeMounts[1].recursiveReadOnly: Forbidden: may only be set when readOnly is true",
            f"{MAIN}.volumeMounts[2].recursiveReadOnly: Forbidden: "
            "may only be set when mountPropagation is None or not set",
        ],
    ),
    (
        "privileged propagation",
        {
            "securityContext": {"privileged": True},
            "volumeMounts": [{"name": "data", "mountPath": "/a", "mountPropagation": "Bidirectional"}],
        },
        [],
    ),
    ("device", {"volumeDevices": [{"name": "disk", "devicePath": "/dev/x"}]}, []),
    (
        "devices",
        {
            "volumeMounts": [{"name": "data", "mountPath": "/dev/x"}],
            "volumeDevices": [
                {"name": "disk", "devicePath": "/dev/x"},
                {"name": "disk", "devicePath": "/dev/x"},
                {"name": "plain", "devicePath": "/dev/../y"},
            ],
        },
        [
            f'{MAIN}.volumeDevices[1].name: Duplicate value: "disk"',
            f'{MAIN}.volumeDevices[1].devicePath: Duplicate value: "/dev/x"',
            f'{MAIN}.volumeDevices[0].devicePath: Invalid value: "/dev/x": is already a mountPath in volumeMounts',
            f'{MAIN}.volumeDevices[1].devicePath: Invalid value: "/dev/x": is already a mountPath in volumeMounts',
            f"{MAIN}.volumeDevices[2].devicePath: Invalid value: \"/dev/../y\": must not contain '..'",
            f'{MAIN}.volumeDevices[2].name: Invalid value: "plain": '
            "only a persistentVolumeClaim or ephemeral volume is a block device",
        ],
    ),
]


@pytest.mark.parametrize(("container", "expected"), [case[1:] for case in MOUNTS], ids=[case[0] for case in MOUNTS])
def test_mounts(container: dict[str, Any], expected: list[str]) -> None:
    main = {"name": "main", "image": "a:1", **container}
    volumes = [{"name": "data"}, {"name": "plain"}, PVC]
    assert findings(manifest(spec={"volumes": volumes, "containers": [main]})) == expected
