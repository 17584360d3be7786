"""Credential providers as programs: how they are run, how often, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.podobjects.registry_login import PullAccount
from ipc.link.wire.credential_provider import CredentialProvider, TokenAttributes
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
    (found,) = await ProviderLogins((shop,), SystemClock()).find(IMAGE)
    assert (found.login.username, found.login.password, found.owner) == ("shop", SECRET, None)
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
    assert [found.login.username for found in await stayer] == ["shop"]
    assert len(asked(shop)) == 1


async def test_logins_of_several_providers_have_the_configuration_s_order(tmp_path: Path) -> None:
    two = [provider(tmp_path, ANSWERS, name=name) for name in ("first", "another")]
    found = await ProviderLogins(two, SystemClock()).find(IMAGE)
    assert [each.login.username for each in found] == ["first", "another"]


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
    assert [found.login.username for found in await logins.find(IMAGE)] == [it.name for it in two[1:]]
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


# --- service accounts --------------------------------------------------------------------------------------------

TOKENS = TokenAttributes(
    audience="shop", requires_account=True, required_annotations=("shop/team",), optional_annotations=("shop/role",)
)
ACCOUNT = PullAccount(
    namespace="default",
    name="builder",
    uid="u",
    annotations=(("shop/team", "red"), ("other", "x")),
    tokens=(("shop", "token-one"),),
)


def with_tokens(directory: Path, **changes: Any) -> CredentialProvider:
    tokens = msgspec.structs.replace(TOKENS, **changes)
    return msgspec.structs.replace(provider(directory, ANSWERS), tokens=tokens)


async def test_it_is_told_the_account_of_the_pod_and_its_answer_is_the_account_s(tmp_path: Path) -> None:
    shop = with_tokens(tmp_path)
    logins = ProviderLogins((shop,), SystemClock())
    (found,) = await logins.find(IMAGE, ACCOUNT)
    assert found.owner == ACCOUNT
    (told,) = (json.loads(line) for line in asked(shop))
    assert told == {
        "kind": "CredentialProviderRequest",
        "apiVersion": V1,
        "image": "quay.io/a/b",
        "serviceAccountToken": "token-one",
        "serviceAccountAnnotations": {"shop/team": "red"},
    }
    renewed = msgspec.structs.replace(ACCOUNT, tokens=(("shop", "token-two"),))
    await logins.find(IMAGE, renewed)
    assert len(asked(shop)) == 1, "kept for the account, whatever its token"
    await logins.find(IMAGE, msgspec.structs.replace(ACCOUNT, uid="another"))
    await logins.find(IMAGE, msgspec.structs.replace(ACCOUNT, annotations=(("shop/team", "blue"),)))
    assert len(asked(shop)) == 3


async def test_an_answer_may_hold_for_one_token(tmp_path: Path) -> None:
    shop = with_tokens(tmp_path, is_kept_by_token=True)
    logins = ProviderLogins((shop,), SystemClock())
    for token in ("token-one", "token-one", "token-two"):
        await logins.find(IMAGE, msgspec.structs.replace(ACCOUNT, tokens=(("shop", token),)))
    assert len(asked(shop)) == 2


@pytest.mark.parametrize(
    ("account", "changes", "times"),
    [
        (None, {}, 0),
        (None, {"requires_account": False, "required_annotations": ()}, 1),
        (msgspec.structs.replace(ACCOUNT, annotations=()), {}, 0),
        (msgspec.structs.replace(ACCOUNT, tokens=()), {}, 0),
        (msgspec.structs.replace(ACCOUNT, problem="no answer"), {"requires_account": False}, 0),
    ],
)
async def test_whom_it_is_asked_for(
    tmp_path: Path, account: PullAccount | None, changes: dict[str, Any], times: int
) -> None:
    shop = with_tokens(tmp_path, **changes)
    found = await ProviderLogins((shop,), SystemClock()).find(IMAGE, account)
    assert len(found) == times
    assert [each.owner for each in found] == [None] * times
    assert len(asked(shop) if times else []) == times


async def test_a_token_is_no_password_for_all_of_the_account(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    echo = msgspec.structs.replace(ACCOUNT, tokens=(("shop", SECRET),))
    assert await ProviderLogins((with_tokens(tmp_path),), SystemClock()).find(IMAGE, echo) == ()
    assert "returned the service account token as the password" in caplog.text
    assert SECRET not in caplog.text
    assert await ProviderLogins((with_tokens(tmp_path, is_kept_by_token=True),), SystemClock()).find(IMAGE, echo)
