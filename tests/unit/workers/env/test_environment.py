"""The environment of a container."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.annotations import API_SOURCE, CONFIG_SOURCE
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.env import EnvFromSource, EnvVar, EnvVarSource
from ipc.k8s.podobjects.cluster_values import ClusterValues
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.k8s.podresources.node_resources import NodeResources
from tests.support.pods import container, pod
from workers.env.downward import PodPlacement
from workers.env.env_files import EnvFile, read_env_file
from workers.env.environment import EnvironmentSources, make_environment
from workers.env.expansion import MAX_EXPANSION_CHARS, MAX_PROCESS_CHARS
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.mounted_volume import MountedVolume
from workers.userns.unshare import Unshare

SECRET = "kept to ourselves"
OBJECTS = ConfigObjects(
    config_maps={
        "c": ConfigMap(data={"A": "of c", "B": "$(A)", "a.key": "dotted"}, binary_data={"BINARY": b"\x00\xff"}),
        "d": ConfigMap(data={"A": "of d"}),
    },
    secrets={
        "s": Secret(data={"A": b"of s", "EMPTY": b""}),
        "spoiled": Secret(data={"A": f"{SECRET}\xff".encode("latin-1"), "NUL": f"{SECRET}\0".encode(), "FINE": b"x"}),
    },
)


def literal(name: str, value: str = "") -> EnvVar:
    return EnvVar(name=name, value=value)


def value_from(name: str, **source: Mapping[str, Any]) -> EnvVar:
    """The variable with that source, by its JSON name."""
    return EnvVar(name=name, value_from=msgspec.convert(source, EnvVarSource))


def env_from(**source: Any) -> EnvFromSource:
    return msgspec.convert(source, EnvFromSource)


def environment(*env: EnvVar, env_from: tuple[EnvFromSource, ...] = (), **sources: Any) -> dict[str, str]:
    of = pod(container("main", env=env, env_from=env_from))
    return make_environment(of.spec.containers[0], EnvironmentSources(pod=of, **{"objects": OBJECTS, **sources}))


def refusal(*env: EnvVar, **arguments: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        environment(*env, **arguments)
    assert SECRET not in refused.value.message
    return refused.value.message


# --- order and references ----------------------------------------------------------------------------------------


def test_of_two_values_of_a_name_the_last_one_counts() -> None:
    assert environment(literal("A", "1"), literal("B", "2"), literal("A", "3")) == {"A": "3", "B": "2"}


def test_a_value_sees_those_before_it() -> None:
    env = (literal("LATER", "$(A) $(B) $$(A)"), literal("A", "a"), literal("B", "$(A)b"), literal("A", "$(A)$(A)"))
    assert environment(*env) == {"LATER": "$(A) $(B) $(A)", "A": "aa", "B": "ab"}


def test_env_from_comes_first_and_in_order() -> None:
    froms = (
        env_from(configMapRef={"name": "c"}),
        env_from(secretRef={"name": "s"}, prefix="S_"),
        env_from(configMapRef={"name": "d"}),
    )
    found = environment(literal("REF", "$(A), $(S_A)"), literal("B"), env_from=froms)
    assert found == {
        "A": "of d",
        "B": "",
        "a.key": "dotted",
        "S_A": "of s",
        "S_EMPTY": "",
        "REF": "of d, of s",
    }


def test_values_that_double_one_another_end_at_the_longest_that_a_process_can_be_given() -> None:
    doubling = (literal(f"A{number}", f"$(A{number - 1})" * 2) for number in range(1, 60))
    message = refusal(literal("A0", "xx"), *doubling)
    first = MAX_EXPANSION_CHARS.bit_length() - 1
    assert message == (
        f'environment variable "A{first}": its references expand to more than {MAX_EXPANSION_CHARS} characters'
    )


def test_all_variables_together_are_no_longer_than_a_process_can_be_given() -> None:
    long = ConfigObjects(config_maps={"c": ConfigMap(data={"A": "x" * MAX_EXPANSION_CHARS})})
    fit, names = MAX_PROCESS_CHARS // (MAX_EXPANSION_CHARS + 3), [f"{number:02}_" for number in range(60)]
    froms = [env_from(configMapRef={"name": "c"}, prefix=name) for name in names]
    assert len(environment(env_from=tuple(froms[:fit]), objects=long)) == fit
    assert refusal(env_from=tuple(froms), objects=long) == (
        f'environment variable "{names[fit]}A": with it all variables have more than {MAX_PROCESS_CHARS} characters'
    )
    of_map = {"configMapKeyRef": {"name": "c", "key": "A"}}
    assert names[fit] in refusal(*(value_from(name, **of_map) for name in names), objects=long)


def test_what_comes_from_elsewhere_is_not_expanded() -> None:
    """But it can be referred to."""
    env = (
        literal("A", "a"),
        value_from("MAP", configMapKeyRef={"name": "c", "key": "B"}),
        value_from("SECRET", secretKeyRef={"name": "s", "key": "A"}),
        literal("REF", "$(MAP)/$(SECRET)"),
    )
    assert environment(*env) == {"A": "a", "MAP": "$(A)", "SECRET": "of s", "REF": "$(A)/of s"}


def test_no_repr_has_a_value() -> None:
    found = environment(value_from("PASSWORD", secretKeyRef={"name": "s", "key": "A"}), literal("B", "$(PASSWORD)"))
    assert repr(found) == "Environment('PASSWORD', 'B')"
    assert "of s" not in repr(OBJECTS)


# --- what is not there -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        (value_from("V", configMapKeyRef={"name": "x", "key": "A"}), 'configmap "x" not found'),
        (value_from("V", secretKeyRef={"name": "x", "key": "A"}), 'secret "x" not found'),
        (
            value_from("V", configMapKeyRef={"name": "c", "key": "K"}),
            "couldn't find key K in ConfigMap default/c",
        ),
        (
            value_from("V", configMapKeyRef={"name": "c", "key": "BINARY"}),
            "couldn't find key BINARY in ConfigMap default/c",
        ),
        (value_from("V", secretKeyRef={"name": "s", "key": "K"}), "couldn't find key K in Secret default/s"),
        (value_from("V", fieldRef={"fieldPath": "status.phase"}), "unsupported fieldPath: status.phase"),
        (
            value_from("V", resourceFieldRef={"resource": "limits.cpu", "containerName": "x"}),
            "container x not found",
        ),
        (
            value_from("V", fileKeyRef={"volumeName": "v", "path": "p", "key": "K"}),
            'cannot find the volume "v" referenced by FileKeyRef',
        ),
        (value_from("V", secretKeyRef={"name": "spoiled", "key": "A"}), "key A in Secret default/spoiled is not UTF-8"),
        (
            value_from("V", secretKeyRef={"name": "spoiled", "key": "NUL"}),
            'environment variable "V" has a NUL in its value',
        ),
        (literal("V", "a\0b"), 'environment variable "V" has a NUL in its value'),
    ],
)
def test_a_value_that_nobody_has_holds_the_container_back(variable: EnvVar, message: str) -> None:
    assert refusal(literal("BEFORE", "b"), variable) == message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (env_from(configMapRef={"name": "x"}), 'configmap "x" not found'),
        (env_from(secretRef={"name": "x"}), 'secret "x" not found'),
        (env_from(secretRef={"name": "spoiled"}), "key A in Secret default/spoiled is not UTF-8"),
    ],
)
def test_an_object_that_is_not_there_holds_the_container_back(source: EnvFromSource, message: str) -> None:
    assert refusal(env_from=(source,)) == message


def test_what_is_optional_is_left_out() -> None:
    """And leaves alone what had that name before."""
    optional = {"optional": True}
    froms = tuple(env_from(**{kind: {"name": "x", **optional}}) for kind in ("configMapRef", "secretRef"))
    env = (
        literal("A", "a"),
        value_from("A", configMapKeyRef={"name": "x", "key": "A", **optional}),
        value_from("A", secretKeyRef={"name": "x", "key": "A", **optional}),
        value_from("B", configMapKeyRef={"name": "c", "key": "K", **optional}),
        value_from("B", secretKeyRef={"name": "s", "key": "K", **optional}),
        value_from("EMPTY", secretKeyRef={"name": "s", "key": "EMPTY", **optional}),
        literal("REF", "$(B)"),
    )
    assert environment(*env, env_from=froms) == {"A": "a", "EMPTY": "", "REF": "$(B)"}


# --- the pod and its node ----------------------------------------------------------------------------------------


def test_fields_and_resources() -> None:
    where = PodPlacement(node_name="node", host_ips=("192.0.2.1",), pod_ips=("fd00::6", "10.0.0.6"))
    env = (
        value_from("NAME", fieldRef={"fieldPath": "metadata.name"}),
        value_from("NODE", fieldRef={"fieldPath": "spec.nodeName"}),
        value_from("IPS", fieldRef={"fieldPath": "status.podIPs"}),
        value_from("MEMORY", resourceFieldRef={"resource": "limits.memory", "divisor": "1Mi"}),
    )
    node = NodeResources(allocatable={"memory": "4000000Ki"})
    assert environment(*env, where=where, node=node) == {
        "NAME": "web",
        "NODE": "node",
        "IPS": "10.0.0.6,fd00::6",
        "MEMORY": "3907",
    }


# --- files -------------------------------------------------------------------------------------------------------


@pytest.fixture
def volumes(tmp_path: Path) -> dict[str, MountedVolume]:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "vars.env").write_text("# of the init container\nA='from a file'\nEMPTY=''\n")
    (tmp_path / "bad.env").write_text(f"A={SECRET}\n")
    return {"v": MountedVolume(name="v", path=tmp_path), "image": MountedVolume(name="image", image="localhost/x:1")}


def of_file(path: str, key: str = "A", volume: str = "v", **more: Any) -> EnvVar:
    return value_from("V", fileKeyRef={"volumeName": volume, "path": path, "key": key, **more})


def test_a_variable_of_a_file(volumes: dict[str, MountedVolume]) -> None:
    assert environment(of_file("sub/vars.env"), volumes=volumes) == {"V": "from a file"}


def test_a_file_is_read_once_for_all_its_variables(
    volumes: dict[str, MountedVolume], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def reading(volume: Path, path: str, unshare: Unshare, *, in_memory: bool) -> EnvFile:
        read.append(path)
        return read_env_file(volume, path, unshare, in_memory=in_memory)

    monkeypatch.setattr("workers.env.environment.read_env_file", reading)
    there, absent = of_file("sub/vars.env"), of_file("none.env", optional=True)
    assert environment(there, absent, there, absent, volumes=volumes) == {"V": "from a file"}
    assert read == ["sub/vars.env", "none.env"]


@pytest.mark.parametrize(("path", "key"), [("sub/vars.env", "X"), ("sub/vars.env", "EMPTY"), ("none.env", "A")])
def test_an_optional_variable_of_a_file_is_left_out(path: str, key: str, volumes: dict[str, MountedVolume]) -> None:
    assert environment(of_file(path, key, optional=True), volumes=volumes) == {}


def test_a_file_that_cannot_be_read(volumes: dict[str, MountedVolume], caplog: pytest.LogCaptureFixture) -> None:
    for path in ("none.env", "sub", "bad.env"):
        assert refusal(of_file(path), volumes=volumes) == "couldn't parse env file"
    assert "default/web, container main: environment file" in caplog.text
    assert "at line 1: value must be enclosed in single quotes" in caplog.text
    assert SECRET not in caplog.text


def test_a_missing_variable_of_a_file(volumes: dict[str, MountedVolume]) -> None:
    file = volumes["v"].path
    for key in ("X", "EMPTY"):
        expected = f'environment variable key "{key}" not found in file "{file}/sub/vars.env"'
        assert refusal(of_file("sub/vars.env", key), volumes=volumes) == expected


def test_a_volume_that_is_no_directory(volumes: dict[str, MountedVolume]) -> None:
    expected = 'cannot find the volume "image" referenced by FileKeyRef'
    assert refusal(of_file("a", volume="image"), volumes=volumes) == expected


# --- services of a cluster -----------------------------------------------------------------------------------------

SERVICES = ConfigObjects(cluster=ClusterValues(service_variables={"DB_SERVICE_HOST": "10.0.0.2", "DB_PORT": "tcp"}))


def test_services_stand_behind_everything() -> None:
    found = environment(literal("DB_PORT", "mine"), literal("URL", "$(DB_SERVICE_HOST):$(DB_PORT)"), objects=SERVICES)
    assert found == {"DB_PORT": "mine", "URL": "10.0.0.2:mine", "DB_SERVICE_HOST": "10.0.0.2"}


def test_pod_of_a_cluster_waits_for_its_services() -> None:
    of = pod()
    annotations = {CONFIG_SOURCE: API_SOURCE}
    of = msgspec.structs.replace(of, metadata=msgspec.structs.replace(of.metadata, annotations=annotations))
    with pytest.raises(ConfigError, match="services have not yet been read at least once, cannot construct envvars"):
        make_environment(of.spec.containers[0], EnvironmentSources(pod=of))
