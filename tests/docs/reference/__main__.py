"""``python -m tests.docs.reference``: write docs/commands.md, docs/settings.md and docs/events.md anew."""

from __future__ import annotations

from tests.docs.reference.pages import DOCS, rendered

if __name__ == "__main__":
    for name, text in rendered().items():
        (DOCS / name).write_text(text)
