"""Makes sure that the packages that the command `rootlet` is about to import are Rootlet's.

Their names are short, and others have them too: Supervisor, the process manager, above all. It stands in a package that
Supervisor does not have.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import PathFinder

PACKAGES = ("supervisor", "workers")
FOREIGN_FILE = os.path.join("supervisor", "supervisord.py")
"""In Rootlet's directory when Supervisor was installed into the same one."""
ADVICE = "install Rootlet into an environment of its own, such as: pipx install rootlet"


def foreign_package(home: str) -> str:
    """Why the packages are not those of the Rootlet that is installed in ``home``; empty when they are."""
    for name in PACKAGES:
        found = PathFinder.find_spec(name)
        where = os.path.dirname(found.origin) if found is not None and found.origin else ""
        if not where:
            return f'the Python package "{name}" of this installation is damaged or missing in {home}'
        if os.path.realpath(where) != os.path.join(home, name):
            return f'the Python package "{name}" in {where} is not Rootlet\'s, and hides its own in {home}'
    if os.path.exists(os.path.join(home, FOREIGN_FILE)):
        return f'{home} has Supervisor too, the process manager, whose Python package is called "supervisor" as well'
    return ""


def main() -> int:
    """Run the command, or say why it cannot be run; its exit code, where it returns at all."""
    if words := foreign_package(os.path.realpath(os.path.join(os.path.dirname(__file__), *(os.pardir,) * 3))):
        print(f"error: {words}: {ADVICE}", file=sys.stderr)
        return 1
    # By its name: nothing in this package depends on what stands above it.
    run: int = importlib.import_module("supervisor.__main__").main()
    return run
