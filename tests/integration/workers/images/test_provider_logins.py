"""Credential providers as programs: how they are run, how often, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path

import msgspec
import pytest

from ipc.host.clock import SystemClock
from ipc.wire.credential_provider import CredentialProvider
from workers.images import provider_logins
from workers.images.provider_logins import ProviderLogins
from workers.kubecontainer.image_reference import parse_image_reference

V1 = "credentialprovider.kubelet.k8s.io/v1"
SECRET = "no one may read this"
IMAGE = parse_image_reference("quay.io/a/b:1")
ANSWERS = (
    f"""printf '{{"kind":"CredentialProviderResponse","apiVersion":"{V1}","cacheKeyType":"Image","""
    """"auth":{"quay.io":{"username":"%s","password":"%s"}}}' "$1" "$PASSWORD" """
)


def provider(directory: Path, script: str, *, name: str = "shop", cache_s: float = 60.0) -> CredentialProvider:
    """A program that keeps what it was asked in ``NAME.asked``, a line for each time."""
    program = directory / name
    program.write_text(f"#!/bin/sh\ncat >> {program}.asked\n{script}\n")
    program.chmod(0o700)
    return CredentialProvider(
        name=name,
        program=str(program),
        api_version=V1,
        match_images=("quay.io",),
        default_cache_s=cache_s,
        args=(name,),
        env=(("PASSWORD", SECRET),),
    )


def asked(of: CredentialProvider) -> list[str]:
    return Path(f"{of.program}.asked").read_text().splitlines()


async def test_it_reads_a_request_and_gives_logins_with_its_arguments_and_variables(tmp_path: Path) -> None:
    shop = provider(tmp_path, ANSWERS)
    (login,) = await ProviderLogins((shop,), SystemClock()).find(IMAGE)
    assert (login.username, login.password) == ("shop", SECRET)
    request = {"kind": "CredentialProviderRequest", "apiVersion": V1, "image": "quay.io/a/b"}
    assert [json.loads(line) for line in asked(shop)] == [request]


async def test_it_runs_once_for_all_who_ask_and_not_again_while_its_answer_holds(tmp_path: Path) -> None:
    shop = provider(tmp_path, ANSWERS)
    logins = ProviderLogins((shop,), SystemClock())
    found = await asyncio.gather(logins.find(IMAGE), logins.find(IMAGE))
    assert found[0] == found[1] == await logins.find(IMAGE)
    assert len(asked(shop)) == 1
    await logins.find(parse_image_reference("quay.io/other"))
    assert await logins.find(parse_image_reference("gcr.io/a/b")) == ()
    assert len(asked(shop)) == 2


async def test_who_stops_waiting_takes_the_answer_from_nobody(tmp_path: Path) -> None:
    shop = provider(tmp_path, f"until test -e {tmp_path}/go; do sleep 0.01; done\n{ANSWERS}")
    logins = ProviderLogins((shop,), SystemClock())
    leaver, stayer = (asyncio.ensure_future(logins.find(IMAGE)) for _ in range(2))
    await asyncio.sleep(0)
    leaver.cancel()
    (tmp_path / "go").touch()
    assert [login.username for login in await stayer] == ["shop"]
    assert len(asked(shop)) == 1


async def test_logins_of_several_providers_have_the_configuration_s_order(tmp_path: Path) -> None:
    two = [provider(tmp_path, ANSWERS, name=name) for name in ("first", "another")]
    assert [login.username for login in await ProviderLogins(two, SystemClock()).find(IMAGE)] == ["first", "another"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (f"echo '{SECRET}' >&2; exit 3", "failed with exit code 3"),
        (f"echo '{SECRET}'", "its output is no JSON object"),
        ("sleep 60 & wait", "no answer within 0.3 s"),
        ("yes | head -c 2000000", "has printed more than 1048576 bytes"),
    ],
)
async def test_one_that_fails_is_told_of_without_a_secret_and_the_others_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, script: str, words: str
) -> None:
    monkeypatch.setattr(provider_logins, "DEADLINE_S", 0.3 if "sleep" in script else 30.0)
    caplog.set_level(logging.DEBUG)
    two: tuple[CredentialProvider, ...] = (
        provider(tmp_path, script, name="broken"),
        provider(tmp_path, ANSWERS, name="good"),
    )
    if "sleep" in script:
        two = two[:1]
    logins = ProviderLogins(two, SystemClock())
    assert [login.username for login in await logins.find(IMAGE)] == [it.name for it in two[1:]]
    assert words in caplog.text
    assert "credential provider broken gave no logins for quay.io/a/b" in caplog.text
    assert SECRET not in caplog.text


async def test_one_that_is_gone_is_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shop = msgspec.structs.replace(provider(tmp_path, ANSWERS), program="/nowhere/shop")
    assert await ProviderLogins((shop,), SystemClock()).find(IMAGE) == ()
    assert "No such file or directory" in caplog.text


async def test_what_runs_ends_with_the_worker(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "life")
    shop = provider(tmp_path, f"exec 3> {tmp_path}/life; sleep 60")
    logins = ProviderLogins((shop,), SystemClock())
    asking = asyncio.ensure_future(logins.find(IMAGE))
    life = await asyncio.to_thread((tmp_path / "life").open, "rb")  # waits until it runs
    await logins.close()
    with pytest.raises(asyncio.CancelledError):
        await asking
    with life:
        assert await asyncio.to_thread(life.read) == b"", "nobody of its session has the other end any more"
