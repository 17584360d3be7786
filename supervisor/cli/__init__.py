"""The command line: `rootlet run`, and everything that asks a running agent over its admin socket."""

from supervisor.cli.main import run_cli

__all__ = ["run_cli"]
