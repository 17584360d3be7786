"""Findings of the checks. Pure."""

from __future__ import annotations

import enum

import msgspec


class Level(enum.StrEnum):
    OK = "ok"
    WARNING = "warning"
    """Something works less well than one may think, or will end at some number."""
    FAILED = "failed"
    """Something asked for cannot work."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence about one subject, and what to do about it."""

    level: Level
    subject: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}{f' ({self.remedy})' if self.remedy else ''}"


def ok(subject: str, message: str) -> Finding:
    return Finding(level=Level.OK, subject=subject, message=message)


def warning(subject: str, message: str, remedy: str = "") -> Finding:
    return Finding(level=Level.WARNING, subject=subject, message=message, remedy=remedy)


def failed(subject: str, message: str, remedy: str = "") -> Finding:
    return Finding(level=Level.FAILED, subject=subject, message=message, remedy=remedy)
