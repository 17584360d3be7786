"""Choice of the Podman service, and of its containers.conf."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Final

import msgspec
import pytest

from supervisor.admission import cgroups
from supervisor.config.settings import PodmanSettings, Settings, seconds
from supervisor.processes.late_cleanup import CONMON_PATHS
from supervisor.processes.podman_service import (
    choose_service,
    write_conf,
)

AT_ONCE: Final = PodmanSettings(cleanup_delay_s=seconds("0s"))


def settings(tmp_path: Path, **podman: object) -> Settings:
    base = Settings(admin_socket=tmp_path / "rootlet" / "test.sock", state_dir=tmp_path / "state")
    return msgspec.structs.replace(base, podman=PodmanSettings(**podman))  # type: ignore[arg-type]


def test_an_endpoint_that_is_named_is_taken(tmp_path: Path) -> None:
    named = msgspec.structs.replace(settings(tmp_path), container_runtime_endpoint="unix:///some/where.sock")
    assert choose_service(named, tmp_path, {}).socket == Path("/some/where.sock")
    assert choose_service(named, tmp_path, {}).argv == ()


@pytest.mark.parametrize(
    ("stated", "limits"),
    [
        ("", True),
        ('default_ulimits = ["nofile=5:6"]', True),
        ('default_ulimits = ["nofile=5:6", "nproc=7:8"]', False),
        ('default_ulimits = ["RLIMIT_NPROC=7"]', False),
        ('default_ulimits = "nproc"', True),
    ],
)
def test_containers_leave_processes_to_an_agent_with_a_service_of_its_own(
    tmp_path: Path, stated: str, limits: bool
) -> None:
    """Unless the user has said how many they have."""
    (tmp_path / "users.conf").write_text(f"[containers]\n{stated}\n")
    environ = {"HOME": str(tmp_path), "CONTAINERS_CONF": str(tmp_path / "users.conf")}
    assert choose_service(settings(tmp_path, service="own"), tmp_path, environ).limits_processes == limits


def test_containers_of_anothers_service_have_its_limits(tmp_path: Path) -> None:
    named = msgspec.structs.replace(settings(tmp_path), container_runtime_endpoint="unix:///some/where.sock")
    assert not choose_service(named, tmp_path, {}).limits_processes
    assert not choose_service(settings(tmp_path, service="user"), tmp_path, {}).limits_processes


def test_the_same_conf_is_not_written_again(tmp_path: Path) -> None:
    """So that an agent starts on a full disk. Another one replaces it whole."""
    wanted = settings(tmp_path, service="own")
    file = Path(choose_service(wanted, tmp_path, {"HOME": str(tmp_path)}).env["CONTAINERS_CONF"])
    written, content = file.stat(), file.read_bytes()
    choose_service(wanted, tmp_path, {"HOME": str(tmp_path)})
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (written.st_ino, written.st_mtime_ns)
    file.write_text("")
    choose_service(wanted, tmp_path, {"HOME": str(tmp_path)})
    assert file.read_bytes() == content


def test_our_own_service_knows_the_runtimes_of_classes_by_their_paths(tmp_path: Path) -> None:
    """As Podman 6.1 asks for; those that the user names are left."""
    (tmp_path / "users.conf").write_text('[engine.runtimes]\nkata = ["/usr/bin/kata"]\n')
    environ = {"CONTAINERS_CONF": str(tmp_path / "users.conf")}
    made = msgspec.structs.replace(settings(tmp_path, service="own"), runtimes={"other": "/opt/runc"})
    conf = tomllib.loads(Path(choose_service(made, tmp_path, environ).env["CONTAINERS_CONF"]).read_text())
    assert conf["engine"]["runtimes"] == {"kata": ["/usr/bin/kata"], "/opt/runc": ["/opt/runc"]}
    without = choose_service(settings(tmp_path, service="own"), tmp_path, {"HOME": str(tmp_path)})
    engine = tomllib.loads(Path(without.env["CONTAINERS_CONF"]).read_text())["engine"]
    assert not engine.get("runtimes")


@pytest.mark.parametrize(
    ("forwarder", "told"),
    [("", "rootlessport"), ("pasta", "pasta"), ("rootlessport", "rootlessport")],
)
def test_our_own_service_forwards_ports_as_the_setting_says_or_else_as_the_user_does(
    tmp_path: Path, forwarder: str, told: str
) -> None:
    users = '[network]\nrootless_port_forwarder = "rootlessport"\ndefault_network = "pods"\n'
    (tmp_path / "users.conf").write_text(users)
    podman = PodmanSettings(port_forwarder=forwarder)  # type: ignore[arg-type]
    file = write_conf(podman, tmp_path, {"CONTAINERS_CONF": str(tmp_path / "users.conf")})
    network = {"rootless_port_forwarder": told, "default_network": "pods"}
    assert tomllib.loads(file.read_text())["network"] == network


def test_a_log_tag_of_the_users_holds_for_none_of_our_containers(tmp_path: Path) -> None:
    """Logs of containers are files, for which conmon takes no tag."""
    (tmp_path / "users.conf").write_text('[containers]\nlog_tag = "{{.Name}}"\n')
    file = write_conf(PodmanSettings(), tmp_path, {"CONTAINERS_CONF": str(tmp_path / "users.conf")})
    assert tomllib.loads(file.read_text())["containers"]["log_tag"] == ""


def test_our_own_service_has_a_conmon_that_cleans_up_later(tmp_path: Path) -> None:
    """Podman's own list follows, for a state directory that nothing may be executed in."""
    conf = tomllib.loads(write_conf(PodmanSettings(), tmp_path, {"HOME": str(tmp_path)}).read_text())
    program, *others = conf["engine"]["conmon_path"]
    assert Path(program) == tmp_path / "conmon"
    assert os.access(program, os.X_OK)
    assert others == list(CONMON_PATHS)


def test_a_conmon_that_the_user_names_is_the_one_behind_it(tmp_path: Path) -> None:
    (tmp_path / "my conmon").write_text("#!/bin/sh\n")
    (tmp_path / "my conmon").chmod(0o755)
    (tmp_path / "users.conf").write_text(f'[engine]\nconmon_path = ["/none", "{tmp_path}/my conmon"]\n')
    file = write_conf(PodmanSettings(), tmp_path, {"CONTAINERS_CONF": str(tmp_path / "users.conf")})
    program, *others = tomllib.loads(file.read_text())["engine"]["conmon_path"]
    assert others == ["/none", f"{tmp_path}/my conmon"]
    assert f"exec '{tmp_path}/my conmon' " in Path(program).read_text()


def test_without_a_delay_podmans_own_conmon_is_called(tmp_path: Path) -> None:
    conf = tomllib.loads(write_conf(AT_ONCE, tmp_path, {"HOME": str(tmp_path)}).read_text())
    assert "conmon_path" not in conf["engine"]


@pytest.mark.parametrize(
    ("manager", "controllers", "limit"),
    [("systemd", "cpu memory", 0), ("systemd", "cpu memory pids", 7), ("cgroupfs", "cpu memory", 7)],
)
def test_there_is_no_limit_of_processes_where_systemd_has_no_controller_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manager: str, controllers: str, limit: int
) -> None:
    """Also not the user's own: no container would start."""
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    cgroups.service_manager().mkdir(parents=True)
    (cgroups.service_manager() / "cgroup.controllers").write_text(f"{controllers}\n")
    file = tmp_path / "users.conf"
    file.write_text(f'[containers]\npids_limit = 7\n[engine]\ncgroup_manager = "{manager}"\n')
    conf = tomllib.loads(write_conf(AT_ONCE, tmp_path / "state", {"CONTAINERS_CONF": str(file)}).read_text())
    assert conf["containers"]["pids_limit"] == limit
