"""Media types of bodies."""

from __future__ import annotations

import pytest
from aiohttp import web
from multidict import CIMultiDict

from workers.api_server.core.media_type import media_type


@pytest.mark.parametrize(
    ("header", "read"),
    [
        ("application/json", "application/json"),
        ("Application/JSON ; charset=utf-8", "application/json"),
        ("no type", "no type"),
        ("", ""),
    ],
)
def test_parameters_and_case_do_not_count(header: str, read: str) -> None:
    assert media_type(CIMultiDict({"content-type": header})) == read


def test_no_header_is_no_type() -> None:
    assert media_type(CIMultiDict()) == ""
    assert media_type(web.Response(body=b"{}", content_type="application/json").headers) == "application/json"
