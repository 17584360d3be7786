"""Owners of an image that a pod's login has pulled, also when whoever pulled it died."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipc.k8s.podobjects.registry_login import RegistryLogin
from workers.images.pull_records import PullRecords

NAME = "quay.io/a/private:1"
ID = "0123456789abcdef" * 4
ONE, OTHER = RegistryLogin(username="one", password="1"), RegistryLogin(username="other", password="2")


@pytest.fixture
def rights(tmp_path: Path) -> PullRecords:
    return PullRecords(str(tmp_path / "rights"))


def allowed(rights: PullRecords) -> list[bool]:
    """To a pod with each of the logins, and to one without any."""
    return [rights.allows(NAME, ID, logins) for logins in ([ONE], [OTHER], [])]


def test_what_nobody_has_recorded_is_everybodys(rights: PullRecords) -> None:
    assert allowed(rights) == [True, True, True]
    assert [PullRecords("").allows(NAME, ID, logins) for logins in ([ONE], [])] == [True, True]


def test_what_a_login_has_pulled_is_for_those_who_have_it(rights: PullRecords) -> None:
    rights.intend(NAME, ONE)
    rights.grant(NAME, ID, ONE)
    assert allowed(rights) == [True, False, False]
    rights.grant(NAME, ID, OTHER)
    assert allowed(rights) == [True, True, False]
    rights.grant(NAME, ID, None)
    assert allowed(rights) == [True, True, True]


def test_a_pull_that_nobody_has_seen_the_end_of_is_not_everybodys(rights: PullRecords) -> None:
    rights.intend(NAME, ONE)
    assert allowed(rights) == [True, False, False]
    rights.grant(NAME, ID, None)
    assert allowed(rights) == [True, True, True], "the registry has let somebody without a login in"


def test_a_pull_that_has_failed_leaves_nothing(rights: PullRecords) -> None:
    rights.intend(NAME, ONE)
    rights.withdraw(NAME, ONE)
    assert allowed(rights) == [True, True, True]


def test_a_record_that_cannot_be_read_is_nobodys(rights: PullRecords, tmp_path: Path) -> None:
    rights.grant(NAME, ID, ONE)
    (tmp_path / "rights" / ID).write_bytes(b"{")
    assert allowed(rights) == [False, False, False]


def test_no_password_is_written(rights: PullRecords, tmp_path: Path) -> None:
    secret = RegistryLogin(username="user", password="nobody-reads-this")
    rights.intend(NAME, secret)
    rights.grant(NAME, ID, secret)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"nobody-reads-this" in path.read_bytes()]


def test_a_record_that_was_written_again_meanwhile_is_not_forgotten(rights: PullRecords) -> None:
    rights.grant(NAME, ID, ONE)
    ((image_id, at),) = rights.oldest(5).items()
    rights.forget(image_id, at - 1)
    assert allowed(rights) == [True, False, False]
    rights.forget(image_id, at)
    assert (allowed(rights), rights.oldest(5)) == ([True, True, True], {})
