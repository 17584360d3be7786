"""Inspected containers by id and by pod."""

from __future__ import annotations

