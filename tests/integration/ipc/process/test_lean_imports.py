"""Libraries without OpenSSL, in a process that has imported none of them yet; and their TLS once somebody wants it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.harness.certificates import Authority

ROOT: Final = Path(__file__).parents[4]
DEADLINE_S: Final = 120.0
UNWANTED: Final = "{'_ssl', '_hashlib', 'typing_extensions', 'ast', 'dis', 'bz2', 'lzma'} & set(sys.modules)"

AGENT: Final = f"""
import hashlib, hmac, sys
openssl = hashlib.sha256(b'a').hexdigest(), hmac.digest(b'k', b'a', 'sha256')
del sys.modules['hashlib'], sys.modules['hmac'], sys.modules['_hashlib']
from ipc.process import lean_imports
lean_imports.import_libraries()
import workers.main, supervisor.master
assert not {UNWANTED}, {UNWANTED}
import hashlib, hmac
assert (hashlib.sha256(b'a').hexdigest(), hmac.digest(b'k', b'a', 'sha256')) == openssl
import pathlib
part = pathlib.PurePath("/some", "part-of-a-path").parts[-1]
the_same = "".join(list(part))
assert sys.intern(the_same) is the_same, "the part is in the table of names"
import asyncio, uvloop, shutil, subprocess
async def use():
    asyncio.get_running_loop().add_signal_handler(10, print)
    repr(asyncio.current_task())
    await asyncio.gather(asyncio.sleep(0))
uvloop.run(use())
assert subprocess.run(["echo", "a"], stdout=subprocess.PIPE, text=True).stdout == "a\\n"
assert not {UNWANTED}, {UNWANTED}
workers.main._import_api_server()
assert not {UNWANTED}, {UNWANTED}
"""

INSPECT: Final = """
import collections, errno, functools, locale, resource, sys, types
from ipc.process import lean_imports
lean_imports.import_libraries()
import inspect, locale
assert not {"ast", "dis"} & set(sys.modules)
class Kind:
    def method(self): pass
    async def coroutine(self): pass
    def __await__(self): yield
async def coroutine(): pass
async def many(): yield
def function(): yield
@types.coroutine
def old(): yield
@functools.wraps(coroutine)
def wrapper(): pass
made = coroutine()
values = [Kind, Kind(), Kind().method, Kind().coroutine, coroutine, made, many, many(), function, function(), old]
values += [old(), wrapper, print, 1, "", *map(functools.partial, (coroutine, Kind().coroutine, function))]
names = [name for name, value in vars(inspect).items() if callable(value) and name.startswith("is")]
known = {name: getattr(inspect, name) for name in (*names, "unwrap")}
encoding = locale.getencoding()
assert type(inspect) is not types.ModuleType and len(known) == 6
assert inspect.currentframe() is sys._getframe()
assert type(inspect) is not types.ModuleType
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
for _ in range(2):
    try:
        inspect.getdoc
    except OSError as error:
        assert error.errno == errno.EMFILE, error
    else:
        raise AssertionError("no file can be opened")
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
assert inspect.getdoc is vars(inspect)["getdoc"] and type(inspect) is types.ModuleType
for name, own in known.items():
    assert getattr(inspect, name) is not own
    for value in values:
        assert own(value) == getattr(inspect, name)(value), (name, value)
assert encoding == locale.getencoding()
assert locale.normalize("de") and type(locale) is types.ModuleType
assert not hasattr(inspect, "no_such_name")
made.close()
import msgspec
assert type(msgspec.inspect) is not types.ModuleType
assert msgspec.json.schema(int) == {"type": "integer"}
assert msgspec.inspect.type_info(str) == msgspec.inspect.StrType()
"""

TLS: Final = """
import sys
from ipc.process import lean_imports
lean_imports.import_libraries()
import asyncio, uvloop

AUTHORITY, SERVER, OTHER = sys.argv[1:]

async def reply(reader, writer):
    writer.write(await reader.readline())
    writer.close()

async def speak_http(reader, writer):
    writer.write(b"HTTP/1.1 400 Bad Request\\r\\n\\r\\n")
    await reader.read()
    writer.close()

async def line(port, context):
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname="127.0.0.1", ssl_handshake_timeout=60, limit=1 << 20
    )
    writer.write(b"a" * 200_000 + b"\\n")
    said = await reader.readline()
    rest = await reader.read()
    writer.close()
    return len(said), rest

async def main():
    assert "_ssl" not in sys.modules
    plain = await asyncio.start_server(speak_http, "127.0.0.1", 0)
    assert "_ssl" not in sys.modules, "a server without TLS"
    import ssl
    assert "_ssl" not in sys.modules, "nobody has asked it for anything"
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(SERVER)
    server = await asyncio.start_server(reply, "127.0.0.1", 0, ssl=theirs, limit=1 << 20)
    port = server.sockets[0].getsockname()[1]
    assert await line(port, ssl.create_default_context(cafile=AUTHORITY)) == (200_001, b"")
    try:
        await line(port, ssl.create_default_context(cafile=OTHER))
    except ssl.SSLCertVerificationError as error:
        assert error.reason == "CERTIFICATE_VERIFY_FAILED"
    else:
        raise AssertionError("an unknown authority")
    try:
        await line(plain.sockets[0].getsockname()[1], ssl.create_default_context(cafile=AUTHORITY))
    except ssl.SSLError as error:
        assert error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"), error
    else:
        raise AssertionError("no TLS there")
    try:
        await asyncio.open_connection("127.0.0.1", port, ssl=object())
    except (TypeError, AttributeError):
        pass
    else:
        raise AssertionError("no context")
    try:
        await asyncio.start_server(reply, "127.0.0.1", 0, ssl=object())
    except TypeError:
        pass
    else:
        raise AssertionError("no context")
    assert ssl.get_server_certificate is vars(ssl)["get_server_certificate"]
    assert not hasattr(ssl, "no_such_name")

uvloop.run(main())
"""


def run(program: str, *arguments: str) -> None:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr


def test_an_agent_has_no_openssl_and_the_same_hashes() -> None:
    run(AGENT)


def test_tls_is_there_for_who_wants_it(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "known"), Authority(tmp_path / "other", "other")
    run(TLS, str(authority.file), str(authority.server()), str(other.file))


def test_what_others_use_of_modules_that_come_late_is_as_there() -> None:
    run(INSPECT)
