"""HTTP on the admin socket: answers from its informer's copy, so that a read never costs the master a turn."""

from workers.api_server.server import run_api_server

__all__ = ["run_api_server"]
