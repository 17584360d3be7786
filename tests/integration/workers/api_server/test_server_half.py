"""aiohttp without its client, in a process that has not imported it yet."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from workers.api_server.server_half import leave_client_out
leave_client_out()
import workers.api_server.server
assert "aiohttp.web" in sys.modules
assert "aiohttp.client" not in sys.modules
import aiohttp
server = aiohttp.web
assert not hasattr(aiohttp, "__wrapped__")
assert "aiohttp.client" not in sys.modules
assert aiohttp.ClientSession.__module__ == "aiohttp.client"
assert aiohttp.__version__
assert aiohttp.web is server
leave_client_out()
assert sys.modules["aiohttp"] is aiohttp
"""

LATER = """
import sys
from workers.api_server.server_half import LATER, functions_later, leave_client_out
leave_client_out()
with functions_later():
    import aiohttp.web
import workers.api_server.server
assert not {*LATER, "html.entities", "email.message", "email.policy", "frozenlist._frozenlist"} & set(sys.modules)
import attr
assert attr.validators.instance_of(int).type is int
assert attr.converters.to_bool("yes")
assert attr.filters.include(int)(None, 1)
import yarl
assert yarl.URL("http://b\u00fccher.example").raw_host == "xn--bcher-kva.example"
assert yarl.URL("http://xn--bcher-kva.example").host == "b\u00fccher.example"
for _ in range(2):
    assert aiohttp.helpers.parse_content_type("Text/Plain; charset=utf-8; a=\\"b c\\"") == (
        "text/plain", {"charset": "utf-8", "a": "b c"}
    )
    assert aiohttp.helpers.parse_content_type.__wrapped__("no type") == ("application/octet-stream", {})
import email.message, email.policy
assert aiohttp.helpers.EnsureOctetStream.__mro__[1] is email.message.EmailMessage
assert aiohttp.helpers.parse_http_date("Fri, 27 Nov 2026 10:00:00 GMT").hour == 10
assert aiohttp.web_urldispatcher.html_escape("<'>") == "&lt;&#x27;&gt;"
assert aiohttp.helpers.getproxies() == __import__("urllib.request").request.getproxies()
assert aiohttp.web.ArgumentParser(prog="a").prog == "a"
import argparse, html
assert html.unescape("&lt;") == "<"
with functions_later():
    import argparse as the_same
assert the_same is argparse
"""

MIME = """
import mimetypes, pathlib
from workers.api_server.server_half import functions_later, leave_client_out
leave_client_out()
known = mimetypes.knownfiles
read = []
mimetypes.MimeTypes.read = lambda self, *names: read.append(names)
assert known, "Python names the lists of hosts"
with functions_later():
    import aiohttp.web
assert not read, read
assert mimetypes.knownfiles == known
assert not mimetypes.inited
"""


def test_the_hosts_lists_of_mime_types_are_read_by_who_asks_for_one() -> None:
    done = subprocess.run([sys.executable, "-c", MIME], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_functions_of_modules_that_a_server_does_without_import_them_when_called() -> None:
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


UNKNOWN = """
import sys
from workers.api_server.server_half import functions_later
with functions_later():
    from html import escape, unescape
assert unescape("&lt;") == "<"
import html
assert html.unescape is unescape
"""


def test_another_function_of_such_a_module_is_there_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", UNKNOWN], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_server_imports_no_client_and_who_asks_for_it_has_it() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
