"""How many files this process holds open."""

import gc
import os


def open_files() -> int:
    """What earlier tests left to the collector is collected first: two counts differ by what happened between them."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))
