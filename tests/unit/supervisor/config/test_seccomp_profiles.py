from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

from supervisor.config import seccomp_profiles
from supervisor.config.containers_conf import named_profile
from supervisor.config.seccomp_profiles import default_profile, for_sandboxes, read_profile
from supervisor.config.settings import PodmanSettings
from supervisor.processes.podman_service import write_conf

ARCHITECTURES = [
    {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]},
    {"architecture": "SCMP_ARCH_S390X", "subArchitectures": ["SCMP_ARCH_S390"]},
]
PROFILE = {"defaultAction": "SCMP_ACT_ERRNO", "archMap": ARCHITECTURES, "syscalls": [{"names": ["read"]}]}


def test_a_sandbox_has_the_profile_for_the_hosts_own_architecture_alone() -> None:
    lean = msgspec.json.decode(for_sandboxes(msgspec.json.encode(PROFILE)))
    assert [row["subArchitectures"] for row in lean["archMap"]] == [[], []]
    assert [row["architecture"] for row in lean["archMap"]] == [row["architecture"] for row in ARCHITECTURES]
    assert {**lean, "archMap": ARCHITECTURES} == PROFILE, "nothing else is changed"


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"archMap": null}', b'{"archMap": []}', b'{"archMap": [1]}', b"[" * 100_000]
)
def test_what_has_no_table_of_architectures_gives_none(text: bytes) -> None:
    assert for_sandboxes(text) == b""


def test_podman_looks_for_its_profile_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, override, packaged = tmp_path / "own.json", tmp_path / "override.json", tmp_path / "packaged.json"
    monkeypatch.setattr(seccomp_profiles, "DEFAULT_PROFILES", (str(override), str(packaged)))
    own.touch()
    assert default_profile({}) == ""
    packaged.touch()
    assert default_profile({}) == str(packaged)
    override.touch()
    assert default_profile({"containers": {}}) == str(override)
    assert default_profile({"containers": {"seccomp_profile": str(own)}}) == str(own)


@pytest.mark.parametrize("stated", ["unconfined", "relative.json", "/none", 7])
def test_what_is_no_path_of_a_file_is_left_to_podman(stated: object) -> None:
    assert default_profile({"containers": {"seccomp_profile": stated}}) == ""


def test_the_lean_profile_is_the_services_and_podmans_the_one_to_name(tmp_path: Path) -> None:
    profile, users = tmp_path / "profile.json", tmp_path / "containers.conf"
    profile.write_bytes(msgspec.json.encode(PROFILE))
    users.write_text(f'[containers]\nseccomp_profile = "{profile}"\n')
    environ = {"CONTAINERS_CONF": str(users)}
    conf = tomllib.loads(write_conf(PodmanSettings(), tmp_path / "state", environ).read_text())
    lean = Path(conf["containers"]["seccomp_profile"])
    assert lean == tmp_path / "state" / "sandbox-seccomp.json"
    assert lean.read_bytes() == for_sandboxes(profile.read_bytes())
    assert named_profile(environ) == str(profile)
    profile.write_bytes(b"")
    conf = tomllib.loads(write_conf(PodmanSettings(), tmp_path / "state", environ).read_text())
    assert conf["containers"]["seccomp_profile"] == str(profile), "what is no profile stays the user's"
    users.write_text("[containers")
    assert named_profile(environ) == ""


def test_a_profile_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    assert read_profile("") == b""
    assert read_profile(str(tmp_path / "none")) == b""
    (tmp_path / "large").write_bytes(bytes(seccomp_profiles.MAX_PROFILE_BYTES + 1))
    assert read_profile(str(tmp_path / "large")) == b""
