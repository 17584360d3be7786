"""Ctrl-C: ends the process while modules are loaded, and raises KeyboardInterrupt once a command has something to put
away. A process that it ends has died of the signal, as kubectl does: shells say 130, and end the loop that it was in.

Nothing is imported here that is read from a file (`_signal` is a part of the interpreter, `signal` and `typing` are
not): until `end_the_process` is called, Ctrl-C shows Python's traceback.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from typing import NoReturn

EXIT_INTERRUPTED = 130


def end_the_process() -> None:
    """From now on an interrupt ends the process at once. One that is ignored stays ignored (a shell's `&`)."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def raise_in_commands() -> None:
    """After `end_the_process`: from now on an interrupt raises KeyboardInterrupt, or ends the process where the
    interpreter could only print it (in a destructor, in a callback of a weak reference). A command on another thread
    than the main one has no interrupts to raise."""
    import threading

    if threading.current_thread() is not threading.main_thread():
        return
    if _signal.getsignal(_signal.SIGINT) == _signal.SIG_DFL:
        sys.unraisablehook = _end_by_unraisable
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def die() -> NoReturn:
    """End the process as the signal would have, without a word; what was printed is written before."""
    import os

    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            continue  # nobody reads it, or it is closed
    os.kill(os.getpid(), _signal.SIGINT)
    os._exit(EXIT_INTERRUPTED)  # the signal is blocked


def _end_by_unraisable(found: UnraisableHookArgs) -> None:
    if issubclass(found.exc_type, KeyboardInterrupt):
        die()
    sys.__unraisablehook__(found)
