"""What keeps a container from being made as its manifest says, until something outside of it changes."""

from __future__ import annotations


class ConfigError(Exception):
    """The container waits with reason CreateContainerConfigError; the text is for people and holds no secret."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
