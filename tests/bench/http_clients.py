"""HTTP clients for Podman's socket side by side: CPU of one call, and the memory that a process has from them.

    python -m tests.bench.http_clients [--calls 2000] [--rounds 5]

A server in a process of its own answers every request with the same inspect. ``httptools`` is what is used
(`workers.libpod.connection_pool`); ``h11`` is the same connections with another parser, ``aiohttp`` its client with a
kept connection, ``podman-py`` its ``PodmanClient.api`` in a thread, as it was used for every call before.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import platform
import statistics
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import orjson
import psutil
import uvloop

from ipc.host.clock import process_time
from tests.bench.apart import apart
from tests.fakes.libpod_server import _TEMPLATES
from workers.libpod import decode

KIB: Final = 1024
PATH: Final = "containers/x/json"
START_DEADLINE_S: Final = 30.0

Call = Callable[[], Awaitable[bytes]]
Client = Callable[[str], contextlib.AbstractAsyncContextManager[Call]]
