"""The pages whose commands are run."""

from __future__ import annotations

from typing import Final

from tests.docs.console import Shell, perform, rewritten
from tests.docs.fresh_user import fresh_user

PAGES: Final = ("tutorial.md",)
INSTANCE: Final = "shop"
"""The agent of all pages."""


def renewed(page: str) -> str:
    """The page as a fresh user would see it today."""
    with fresh_user() as user:
        shell = Shell(user.directory, user.environment)
        try:
            return rewritten(page, perform(page, shell, user.directory))
        finally:
            shell.close()
