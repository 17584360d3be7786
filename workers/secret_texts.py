"""Keeping the values of Secrets out of texts: a command may be made of them, and an error may repeat the command."""

from __future__ import annotations

from typing import Final

from ipc.config_objects import ConfigObjects
from workers.go_text import quoted

MIN_VALUE_CHARS: Final = 4
"""Shorter values are left: they turn up in any text, and a hint at where they stood would tell them."""
INSTEAD: Final = "<secret>"


def without_secrets(text: str, objects: ConfigObjects) -> str:
    """The text with every value of these Secrets replaced, also as Go quotes it."""
    values = (value.decode("utf-8", "replace") for secret in objects.secrets.values() for value in secret.data.values())
    forms = {form for value in values for form in (value, value.strip(), quoted(value)[1:-1])}
    for form in sorted(forms, key=len, reverse=True):
        if len(form) >= MIN_VALUE_CHARS:
            text = text.replace(form, INSTEAD)
    return text
