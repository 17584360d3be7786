"""Files that a volume shows: keys, items, modes, what is optional, what is missing, which paths are refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.projected import ClusterTrustBundleProjection
from ipc.k8s.api.v1.security import PodSecurityContext, SecurityContext
from ipc.k8s.api.v1.volume import Volume
from ipc.k8s.podobjects.cluster_values import ClusterValues, PodToken, TokenRequest, TrustAnchors
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.k8s.podresources.node_resources import NodeResources
from tests.support.pods import pod
from workers.volumemanager.plugins.payload import (
    MAX_PATH_NAMES,
    MAX_PAYLOAD_BYTES,
    FileProjection,
    PayloadError,
    PayloadSources,
    cleaned,
    holds_secrets,
    make_payload,
    path_problem,
)

SECRET = "s3cr3t-value"
OBJECTS = ConfigObjects(
    config_maps={"app": ConfigMap(data={"a": "1", "b": "2"}, binary_data={"bin": b"\x00\xff"})},
    secrets={"key": Secret(data={"password": SECRET.encode()})},
)


def volume(**source: Any) -> Volume:
    """From JSON, as manifests have it."""
    return msgspec.convert({"name": "v", **source}, Volume)


def files(source: dict[str, Any], of: Pod | None = None, **sources: Any) -> dict[str, tuple[bytes, int]]:
    made = make_payload(volume(**source), PayloadSources(pod=of or pod(), **{"objects": OBJECTS, **sources}))
    return {path: (file.data, file.mode) for path, file in made.items()}


def problem(source: dict[str, Any], **sources: Any) -> str:
    with pytest.raises(PayloadError) as raised:
        files(source, **sources)
    assert SECRET not in str(raised.value)
    return str(raised.value)


# --- configMap and secret ----------------------------------------------------------------------------------------


def test_all_keys_with_the_default_mode() -> None:
    assert files({"configMap": {"name": "app"}}) == {
        "a": (b"1", 0o644),
        "b": (b"2", 0o644),
        "bin": (b"\x00\xff", 0o644),
    }
    assert files({"secret": {"secretName": "key", "defaultMode": 0o400}}) == {"password": (SECRET.encode(), 0o400)}


def test_items_choose_path_and_mode() -> None:
    items = [{"key": "a", "path": "x/y", "mode": 0o600}, {"key": "bin", "path": "z"}]
    assert files({"configMap": {"name": "app", "items": items, "defaultMode": 0o440}}) == {
        "x/y": (b"1", 0o600),
        "z": (b"\x00\xff", 0o440),
    }


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"configMap": {"name": "nope"}}, 'configmap "nope" not found'),
        ({"secret": {"secretName": "nope"}}, 'secret "nope" not found'),
        (
            {"configMap": {"name": "app", "items": [{"key": "k", "path": "k"}]}},
            "configmap references non-existent config key: k",
        ),
        (
            {"secret": {"secretName": "key", "items": [{"key": "k", "path": "k"}]}},
            "references non-existent secret key: k",
        ),
        ({"projected": {"sources": [{"secret": {"name": "nope"}}]}}, 'secret "nope" not found'),
        (
            {"projected": {"sources": [{"secret": {"name": "no"}}, {"configMap": {"name": "nor"}}]}},
            '[secret "no" not found, configmap "nor" not found]',
        ),
        (
            {"projected": {"sources": [{"secret": {"name": "no"}}, {"secret": {"name": "no"}}]}},
            'secret "no" not found',
        ),
        (
            {"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "spec.nope"}}]}},
            "unsupported fieldPath: spec.nope",
        ),
        (
            {
                "downwardAPI": {
                    "items": [{"path": "x", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}}]
                }
            },
            "container c not found",
        ),
        ({"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}, "there is no API server to ask"),
    ],
)
def test_what_is_missing_is_told_in_upstreams_words(source: dict[str, Any], said: str) -> None:
    assert problem(source).startswith(said)


@pytest.mark.parametrize(
    "source",
    [
        {"configMap": {"name": "nope", "optional": True}},
        {"secret": {"secretName": "nope", "optional": True}},
        {"configMap": {"name": "app", "optional": True, "items": [{"key": "nope", "path": "x"}]}},
        {"projected": {"sources": [{"secret": {"name": "nope", "optional": True}}]}},
        {"projected": {}},
        {"downwardAPI": {}},
    ],
)
def test_what_is_optional_may_be_missing(source: dict[str, Any]) -> None:
    assert files(source) == {}


# --- downwardAPI and projected -----------------------------------------------------------------------------------

LABELLED = msgspec.structs.replace(
    pod(),
    metadata=ObjectMeta(
        name="web",
        namespace="default",
        uid="uid",
        labels={"b": "2", "a": "1"},
        annotations={"note": 'say "hi"\nthen go', "a": ""},
    ),
)


def test_fields_of_the_pod() -> None:
    items = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}, "mode": 0o400},
        {"path": "note", "fieldRef": {"fieldPath": "metadata.annotations['note']"}},
        {"path": "deep/name", "fieldRef": {"fieldPath": "metadata.name"}},
        {
            "path": "memory",
            "resourceFieldRef": {"containerName": "main", "resource": "limits.memory", "divisor": "1Mi"},
        },
    ]
    found = files({"downwardAPI": {"items": items}}, of=LABELLED, node=NodeResources(allocatable={"memory": "1536Mi"}))
    assert found == {
        "labels": (b'a="1"\nb="2"', 0o644),
        "annotations": (b'a=""\nnote="say \\"hi\\"\\nthen go"', 0o400),
        "note": (b'say "hi"\nthen go', 0o644),
        "deep/name": (b"web", 0o644),
        "memory": (b"1536", 0o644),
    }


def test_a_projected_volume_joins_its_sources_and_the_last_one_wins() -> None:
    sources = [
        {"configMap": {"name": "app"}},
        {"secret": {"name": "key", "items": [{"key": "password", "path": "./a", "mode": 0o400}]}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    assert files({"projected": {"sources": sources, "defaultMode": 0o440}}) == {
        "a": (SECRET.encode(), 0o400),
        "b": (b"2", 0o440),
        "bin": (b"\x00\xff", 0o440),
        "name": (b"web", 0o440),
    }


def under_many_paths(kind: str, number: int) -> dict[str, Any]:
    """The same MiB."""
    paths = [f"p{at}" for at in range(number)]
    if kind == "downwardAPI":
        field = {"fieldPath": "metadata.annotations['a']"}
        return {kind: {"items": [{"path": path, "fieldRef": field} for path in paths]}}
    keys = {"name": "big", "items": [{"key": "k", "path": path} for path in paths]}
    return {kind: keys} if kind == "configMap" else {kind: {"sources": [{"configMap": keys}]}}


@pytest.mark.parametrize("kind", ["configMap", "downwardAPI", "projected"])
def test_all_files_together_have_a_maximum(kind: str) -> None:
    big, most = "x" * (1 << 20), MAX_PAYLOAD_BYTES >> 20
    objects = ConfigObjects(config_maps={"big": ConfigMap(data={"k": big})})
    of = msgspec.structs.replace(pod(), metadata=ObjectMeta(name="web", annotations={"a": big}))
    assert len(files(under_many_paths(kind, most), of, objects=objects)) == most
    with pytest.raises(PayloadError, match=f"^its files have more than {MAX_PAYLOAD_BYTES} bytes$"):
        files(under_many_paths(kind, most + 1), of, objects=objects)


def test_an_fs_group_may_read_everything() -> None:
    of = pod(security_context=PodSecurityContext(fs_group=1000))
    assert files({"secret": {"secretName": "key", "defaultMode": 0o400}}, of=of) == {
        "password": (SECRET.encode(), 0o440)
    }


@pytest.mark.parametrize(
    ("source", "is_secret"),
    [
        ({"secret": {"secretName": "key", "optional": True}}, True),
        ({"projected": {"sources": [{"configMap": {"name": "app"}}, {"secret": {"name": "key"}}]}}, True),
        ({"projected": {"sources": [{"configMap": {"name": "app"}}]}}, False),
        ({"configMap": {"name": "app"}}, False),
        ({"downwardAPI": {}}, False),
    ],
)
def test_which_volumes_hold_secrets(source: dict[str, Any], is_secret: bool) -> None:
    assert holds_secrets(volume(**source)) is is_secret


def test_no_repr_shows_a_secret() -> None:
    made = make_payload(volume(secret={"secretName": "key"}), PayloadSources(pod=pod(), objects=OBJECTS))
    assert SECRET not in repr(made)
    assert repr(made["password"]) == "FileProjection(12 bytes, 0o644)"
    assert SECRET not in repr(OBJECTS)


# --- paths -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "../x",
        "a/../../x",
        "a/..",
        "..data",
        "..data/x",
        "./..data/x",
        ".//..2026_01_01_00_00_00.1",
        "...",
        "..x",
        ".",
        "./",
        "a\0b",
        "n" * 256,
        "a/" + "n" * 256,
        "ä" * 128,
        "/".join(["d" * 200] * 21),
        "/".join("d" * (MAX_PATH_NAMES + 1)),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    said = path_problem(path)
    assert said is not None
    assert said.startswith("invalid path: ")
    with pytest.raises(PayloadError):
        cleaned({path: FileProjection(b"", 0o644)})
    of_key = ConfigObjects(config_maps={"app": ConfigMap(data={path: ""})})
    assert problem({"configMap": {"name": "app"}}, objects=of_key) == said


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("a", "a"),
        ("a/b", "a/b"),
        ("./a//b/", "a/b"),
        ("a/..b", "a/..b"),
        (".a", ".a"),
        ("n" * 255, "n" * 255),
        ("a b\n", "a b\n"),
    ],
)
def test_other_paths_are_cleaned(path: str, clean: str) -> None:
    assert list(cleaned({path: FileProjection(b"", 0o644)})) == [clean]


@pytest.mark.parametrize("paths", [("a", "a/b"), ("a/b/c", "a/b"), ("./a", "a//b")])
def test_a_file_is_no_directory(paths: tuple[str, ...]) -> None:
    with pytest.raises(PayloadError, match="is a directory of another file: a"):
        cleaned({path: FileProjection(b"", 0o644) for path in paths})


# --- what a cluster gives ------------------------------------------------------------------------------------------

TOKEN = "eyJ0b2tlbg"
ACCESS = {
    "projected": {
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"clusterTrustBundle": {"name": "ca", "path": "ca.pem"}},
        ]
    }
}


def from_cluster(token: PodToken | None = None, anchors: TrustAnchors | None = None) -> ConfigObjects:
    wish = ClusterTrustBundleProjection(name="ca", path="ca.pem")
    values = ClusterValues(
        tokens=(token or PodToken(wish=TokenRequest("", 3607), token=TOKEN),),
        trust_anchors=(anchors or TrustAnchors(wish=wish, pem="PEM\n"),),
    )
    return ConfigObjects(cluster=values)


def test_token_and_trust_anchors_are_files() -> None:
    assert files(ACCESS, objects=from_cluster()) == {"token": (TOKEN.encode(), 0o644), "ca.pem": (b"PEM\n", 0o644)}
    assert holds_secrets(volume(**ACCESS))


def test_group_alone_reads_a_token() -> None:
    of = pod(security_context=PodSecurityContext(fs_group=1000))
    assert {mode for _, mode in files(ACCESS, of, objects=from_cluster()).values()} == {0o640}


def runs_as(pods: int | None, *containers: int | None, group: int | None = None) -> Pod:
    """A pod, and containers after an init container that says what the pod says."""

    def context(user: int | None) -> SecurityContext | None:
        return None if user is None else SecurityContext(run_as_user=user)

    made = [Container(name=f"c{n}", image="i", security_context=context(user)) for n, user in enumerate(containers)]
    spec = PodSpec(
        init_containers=(Container(name="first", image="i"),),
        containers=tuple(made),
        security_context=PodSecurityContext(run_as_user=pods, fs_group=group),
    )
    return msgspec.structs.replace(pod(), spec=spec)


@pytest.mark.parametrize(
    ("of", "user", "mode"),
    [
        (runs_as(1000, None, None), 1000, 0o600),
        (runs_as(1000, 1000), 1000, 0o600),
        (runs_as(1000, 1001), None, 0o644),
        (runs_as(None, 1000), None, 0o644),
        (runs_as(None, None), None, 0o644),
        (runs_as(0, None), 0, 0o600),
        (runs_as(1000, None, group=2000), 1000, 0o640),
    ],
)
def test_a_token_belongs_to_the_user_as_whom_all_containers_run(of: Pod, user: int | None, mode: int) -> None:
    made = make_payload(volume(**ACCESS), PayloadSources(pod=of, objects=from_cluster()))
    assert {(file.user, file.mode) for file in made.values()} == {(user, mode)}


def test_token_that_could_not_be_fetched_says_why() -> None:
    token = PodToken(wish=TokenRequest("", 3607), problem="failed to fetch token: forbidden")
    assert problem(ACCESS, objects=from_cluster(token)) == "failed to fetch token: forbidden"


def test_token_of_another_audience_is_none() -> None:
    token = PodToken(wish=TokenRequest("vault", 3607), token=TOKEN)
    assert problem(ACCESS, objects=from_cluster(token)) == "failed to fetch token: it was not asked for yet"


def test_missing_trust_anchors_say_why() -> None:
    wish = ClusterTrustBundleProjection(name="ca", path="ca.pem")
    anchors = TrustAnchors(wish=wish, problem='no trust anchors of name "ca"')
    assert problem(ACCESS, objects=from_cluster(anchors=anchors)) == 'no trust anchors of name "ca"'


def test_without_a_cluster_there_is_nobody_to_ask() -> None:
    assert problem(ACCESS) == "there is no API server to ask for that source"


def test_no_repr_says_a_token() -> None:
    assert TOKEN not in repr(from_cluster())
