"""CDI specs, and the devices of a node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ipc.k8s.podresources.devices import Device, DeviceEdits, DeviceMount
from supervisor.admission.node_devices import capacity_of, device_problems, not_healthy, read_devices
from supervisor.config import cdi_specs
from supervisor.config.cdi_specs import read_cdi_specs
from supervisor.config.settings import Settings

KIND = "example.com/zero"
PARSED = ("example.com/gpu=0", "ab/cd=a:b.c-d_e", "v2.x/c-1=0", "a_b/c_d=x", "AA.com/GPU=X", "aa/bb=0.x")
"""Names of devices that every Podman parses (tests/contract/test_cdi_names_podman.py), and such as none does."""
NOT_PARSED = (
    "9.com/gpu=0",
    "a.com/9gpu=0",
    "a-/gpu=0",
    "a.com/gpu.=0",
    "a.com/gpu=0:",
    "a.com/gpu=-",
    "a/gpu=0",
    "a.com/g=0",
    "a.com/gpu=",
    "a.com/gpu=a=b",
    "a.com/gpu=a/b",
    "a.com/x/y=0",
    "a.com/gpu= a",
    "a.com/gpu=é",
)


def spec(*devices: dict[str, Any], **fields: Any) -> str:
    return json.dumps({"cdiVersion": "0.6.0", "kind": KIND, "devices": list(devices), **fields})


def device(name: str, **edits: Any) -> dict[str, Any]:
    return {"name": name, "containerEdits": edits}


def test_edits_of_the_device_and_of_its_spec(tmp_path: Path) -> None:
    node = {"path": "/dev/zero-a", "hostPath": "/dev/zero", "permissions": "r", "type": "c", "major": 1}
    mount = {"hostPath": "/usr/lib/x", "containerPath": "/x", "options": ["ro", "nosuid", "bind"]}
    common = {"env": ["ALL=1", "WHICH=spec"], "mounts": [mount]}
    (tmp_path / "a.json").write_text(spec(device("a", env=["WHICH=a=b"], deviceNodes=[node]), containerEdits=common))
    (tmp_path / "b.yaml").write_text(
        "cdiVersion: 0.5.0\nkind: b.com/tty\ndevices: [{name: '0', containerEdits: {deviceNodes: [{path: /dev/tty}]}}]"
    )
    (tmp_path / "not-a-spec.txt").write_text("{")
    found = read_cdi_specs([str(tmp_path), str(tmp_path / "none")])
    mounts = (DeviceMount("/usr/lib/x", "/x", ("ro",)), DeviceMount("/dev/zero", "/dev/zero-a", ("ro",)))
    assert found.problems == ()
    assert {name: device.device for name, device in found.devices.items()} == {
        f"{KIND}=a": Device(edits=DeviceEdits(env={"ALL": "1", "WHICH": "a=b"}, mounts=mounts)),
        "b.com/tty=0": Device(edits=DeviceEdits(mounts=(DeviceMount("/dev/tty", "/dev/tty"),))),
    }


def test_a_later_directory_counts_and_two_files_of_one_contradict(tmp_path: Path) -> None:
    for place, env in (("1/a.json", "A=1"), ("2/a.json", "A=2"), ("3/a.json", "A=3"), ("3/b.json", "A=4")):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(spec(device("a", env=[env])))
    one, two, three = (str(tmp_path / name) for name in "123")
    assert read_cdi_specs([one, two]).devices[f"{KIND}=a"].device.edits.env == {"A": "2"}
    assert "another file" in read_cdi_specs([one, three]).devices[f"{KIND}=a"].device.problem


@pytest.mark.parametrize("edit", ["hooks", "additionalGids", "intelRdt"])
def test_what_only_podman_can_do_is_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: str) -> None:
    value = {"hooks": [{"hookName": "createContainer", "path": "/bin/x"}], "additionalGids": [7], "intelRdt": {"x": 1}}
    common = {"env": ["ALL=1", "WHICH=spec"]}
    (tmp_path / "a.json").write_text(spec(device("a", env=["WHICH=a"], **{edit: value[edit]}), containerEdits=common))
    problem = read_cdi_specs([str(tmp_path)]).devices[f"{KIND}=a"].device.problem
    assert problem == f"needs {edit}, which only Podman can do: its spec must be in /etc/cdi or /var/run/cdi"
    monkeypatch.setattr(cdi_specs, "PODMANS_DIRECTORIES", (str(tmp_path), "/run/cdi"))
    # Podman gives the variables to the container's own process, and not to those that its API runs beside it.
    edits = DeviceEdits(env={"ALL": "1", "WHICH": "a"}, cdi_names=(f"{KIND}=a",))
    assert read_cdi_specs([str(tmp_path)]).devices[f"{KIND}=a"].device == Device(edits=edits)


@pytest.mark.parametrize(
    ("edits", "problem"),
    [
        ({"deviceNodes": [{"path": "/dev/null"}]}, ""),
        ({"deviceNodes": [{"path": "/dev/null", "hostPath": "/dev/null"}]}, ""),
        (
            {"deviceNodes": [{"path": "/dev/own", "hostPath": "/dev/null"}]},
            "needs hooks, which only Podman can do, and /dev/null as /dev/own, which Podman cannot do without root",
        ),
        ({"deviceNodes": [{"path": "/dev/rootlet-none"}]}, "/dev/rootlet-none: No such file or directory"),
        (
            {"mounts": [{"hostPath": "/rootlet/none", "containerPath": "/x"}]},
            "/rootlet/none: No such file or directory",
        ),
        ({"mounts": [{"hostPath": "none", "containerPath": "/x"}]}, "none:/x: must be absolute paths"),
        ({"hooks": [{"hookName": "createContainer", "path": "/etc/passwd"}]}, "hook /etc/passwd: is not a program"),
        ({"hooks": [{"hookName": "createContainer"}]}, "hook : is not a program"),
    ],
)
def test_what_is_left_to_podman_and_would_start_no_container_is_not_healthy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edits: dict[str, Any], problem: str
) -> None:
    """As Podman 4.3, 5.4 and 6.1 fail with each of these."""
    monkeypatch.setattr(cdi_specs, "PODMANS_DIRECTORIES", (str(tmp_path), "/run/cdi"))
    hooks = [{"hookName": "createContainer", "path": "/bin/true"}]
    (tmp_path / "a.json").write_text(spec(device("a", **{"hooks": hooks, **edits})))
    [found] = read_devices(Settings(devices={"a.b/c": (f"{KIND}=a",)}, cdi_spec_dirs=(str(tmp_path),)))[
        "a.b/c"
    ].values()
    assert found.problem == problem


def test_a_spec_that_cannot_be_read_is_named_where_its_device_is_missed(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    [found] = read_devices(Settings(devices={"a.b/c": (f"{KIND}=a",)}, cdi_spec_dirs=(str(tmp_path),)))[
        "a.b/c"
    ].values()
    assert found.problem.startswith(f"no CDI spec of cdiSpecDirs has it; not read: {tmp_path}/a.json: ")


@pytest.mark.parametrize("name", PARSED)
def test_names_that_podman_parses(name: str) -> None:
    assert cdi_specs.CDI_NAME.fullmatch(name)


@pytest.mark.parametrize("name", NOT_PARSED)
def test_names_that_podman_cannot_parse(name: str) -> None:
    assert not cdi_specs.CDI_NAME.fullmatch(name)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"kind": 7}', "a: 1\n---\nb: 2", '{"cdiVersion": "1", "kind": "a.b/c", "devices": 1}']
)
def test_a_file_that_is_no_spec_costs_its_own_devices(tmp_path: Path, text: str) -> None:
    (tmp_path / "good.json").write_text(spec(device("a")))
    (tmp_path / "bad.json").write_text(text)
    found = read_cdi_specs([str(tmp_path)])
    assert list(found.devices) == [f"{KIND}=a"]
    assert [problem.partition(": ")[0] for problem in found.problems] == [str(tmp_path / "bad.json")]


def test_only_healthy_devices_are_allocatable(tmp_path: Path) -> None:
    node = {"path": "/dev/zero-a", "hostPath": "/dev/zero"}
    gone = {"path": "/dev/gone", "hostPath": "/dev/rootlet-none"}
    (tmp_path / "a.json").write_text(spec(device("a", deviceNodes=[node]), device("b", deviceNodes=[gone])))
    names = (f"{KIND}=a", f"{KIND}=b", f"{KIND}=c", "/dev/null", "/dev/shm")
    devices = read_devices(Settings(devices={"example.com/z": names, "b.com/none": ()}, cdi_spec_dirs=(str(tmp_path),)))
    assert capacity_of(devices) == {"example.com/z": "5", "b.com/none": "0"}
    assert not_healthy(devices) == {"example.com/z": "3"}
    assert list(device_problems(devices)) == [
        f"example.com/z: {KIND}=b: /dev/rootlet-none: No such file or directory",
        f"example.com/z: {KIND}=c: no CDI spec of cdiSpecDirs has it",
        "example.com/z: /dev/shm: /dev/shm: is not a device",
    ]
