"""Error of a container that cannot be made as its manifest says until something outside of it changes."""

from __future__ import annotations


class ConfigError(Exception):
    """The container waits with reason CreateContainerConfigError; the text is for people. Only a path in it, of a
    subPathExpr, may be made of a Secret (`ipc.podobjects.redaction`)."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
