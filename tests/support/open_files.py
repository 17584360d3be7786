"""How many files this process holds open."""

import gc
import os


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def open_files_before() -> int:
    """The count to compare a later one with: what earlier tests left to the collector is collected first."""
    gc.collect()
    return open_files()
