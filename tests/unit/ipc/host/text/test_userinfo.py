"""URLs in what Podman says, without who somebody is."""

from __future__ import annotations

import pytest

from ipc.host.text.userinfo import without_userinfo
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod import decode, decode_images, failures


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dial http://me:hush@proxy:3128: refused", "dial http://proxy:3128: refused"),
        ('parse "http://me:hu/sh@proxy:3128": invalid port ":hu"', 'parse "http://proxy:3128": invalid port ":hu"'),
        ("http://me:hu@sh@proxy/ and https://you:x@other", "http://proxy/ and https://other"),
        ("//me@host", "//host"),
        ("docker://reg:5000/app:1@sha256:ab", "docker://reg:5000/app:1@sha256:ab"),
        ("docker://me:hush@reg/app@sha256:ab@sha512:cd", "docker://reg/app@sha256:ab@sha512:cd"),
        ("https://reg/v2/: me@reg", "https://reg/v2/: me@reg"),
        ("app@sha256:ab", "app@sha256:ab"),
        ("me@here//there", "me@here//there"),
        ("", ""),
    ],
)
def test_users_and_passwords_of_urls_are_left_out(text: str, expected: str) -> None:
    assert without_userinfo(text) == expected


PROXY = "http://me:hush@proxy:3128"


def test_every_text_of_podman_is_cleaned() -> None:
    said = f'"cause":"{PROXY}","message":"{PROXY}: refused"'
    for status, body in ((500, f"{{{said}}}"), (404, f"{{{said}}}"), (500, f"no JSON of {PROXY}")):
        assert "hush" not in str(failures.call_error("call", status, body.encode()))
    for report in (f'{{"Errors":["{PROXY}"]}}', f'{{"Errors":["{PROXY}: image is in use"]}}'):
        with pytest.raises(RuntimeCallError) as caught:
            decode_images.check_images_removed("remove image", report.encode())
        assert "hush" not in repr(caught.value)
    assert decode_images.decode_progress(f'{{"stream":"Trying {PROXY}/a"}}'.encode()) == "Trying http://proxy:3128/a"
    ended = decode.decode_container(
        f'{{"Id":"1","Name":"a","Created":"2026-01-01T00:00:00Z","State":{{"Status":"exited","Error":"{PROXY}"}}}}'.encode()
    )
    assert ended.error == "http://proxy:3128"
    error = RuntimeCallError(ErrorKind.INTERNAL, "a call", PROXY)
    assert (error.message, str(error)) == ("http://proxy:3128", "a call: http://proxy:3128")
