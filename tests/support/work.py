"""How much work a call is: lines of the project's own code that it runs, which no busy machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

_PARTS: Final = tuple(f"{Path(__file__).parents[2] / part}/" for part in ("ipc", "supervisor", "workers"))


def work_of(act: Callable[[], object]) -> int:
    """Every turn of a loop or comprehension counts; loops inside of C functions do not."""
    lines = 0

    def line(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return line

    def call(frame: FrameType, event: str, arg: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(_PARTS) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        act()
    finally:
        sys.settrace(before)
    return lines
