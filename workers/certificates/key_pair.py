"""A new key and the request for its certificate, made by `request_program`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

DEADLINE_S: Final = 60.0
"""How long the program may take, in seconds; it takes half a second."""
NODES: Final = "system:nodes"
_PROGRAM: Final = Path(__file__).with_name("request_program.py")
_REQUEST_BEGINS: Final = b"-----BEGIN CERTIFICATE REQUEST-----"


class KeyPairError(Exception):
    """No key and request could be made; its text says why."""


class KeyPair(msgspec.Struct, frozen=True):
    """Private key and the request for a certificate of its public half, both PEM."""

    key_pem: bytes
    request_pem: bytes

    def __repr__(self) -> str:
        """Without the key."""
        return "KeyPair(…)"


async def make_key_pair(user: str, names: tuple[str, ...] = ()) -> KeyPair:
    """Key and request of a node's ``user``; ``names``: DNS names and addresses of a server. Raises KeyPairError."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", str(_PROGRAM), NODES, user, *names),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(os.environ),
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            output, words = await process.communicate()
    except TimeoutError:
        raise KeyPairError(f"no key within {DEADLINE_S:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    key, begin, rest = output.partition(_REQUEST_BEGINS)
    if process.returncode or not begin:
        last = words.decode(errors="replace").strip().rpartition("\n")[2]
        raise KeyPairError(f"no key could be made: {last}")
    return KeyPair(key, begin + rest)
