"""To whom a new volume of Podman's belongs."""

from __future__ import annotations

import pytest

from workers.kubecontainer.config_error import ConfigError
from workers.volumemanager.first_owner import ImageAccounts, VolumeOwner, first_owner

PASSWD = """root:x:0:0:root:/root:/bin/sh
# a comment: of : all : kinds
broken:x:many:1::
short:x:7
1001:x:5:5:a name like a number:/:
app:x:1000:1001:App:/home/app:/bin/sh
again:x:1000:7:the id a second time:/:
"""
GROUP = "root:x:0:\nstaff:x:50:app,other\nbad:x:-1:\n"


@pytest.mark.parametrize(
    ("user", "owner"),
    [
        ("", (0, 0)),
        ("0", (0, 0)),
        ("app", (1000, 1001)),
        ("1000", (1000, 1001)),
        ("1001", (1001, 0)),
        ("4000", (4000, 0)),
        ("app:staff", (1000, 50)),
        ("app:7", (1000, 7)),
        ("4000:staff", (4000, 50)),
        (":staff", (0, 50)),
    ],
)
def test_the_containers_user_is_looked_up_in_its_image(user: str, owner: tuple[int, int]) -> None:
    assert first_owner(user, ImageAccounts(PASSWD, GROUP)) == VolumeOwner(*owner, 0o755)


def test_a_directory_of_the_image_says_more_than_the_user() -> None:
    there = VolumeOwner(999, 998, 0o1777)
    assert first_owner("nobody-knows", ImageAccounts(PASSWD, GROUP, there)) == there


@pytest.mark.parametrize("user", ["nobody", "broken", "short", "app:nogroup", "app:bad", "99999999999"])
def test_a_name_that_the_image_does_not_have(user: str) -> None:
    with pytest.raises(ConfigError, match="no matching entries"):
        first_owner(user, ImageAccounts(PASSWD, GROUP))


def test_an_image_without_accounts() -> None:
    assert first_owner("1000:2000", ImageAccounts("", "")) == VolumeOwner(1000, 2000)
    assert first_owner("", ImageAccounts("", "")).option == "uid=0,gid=0"
