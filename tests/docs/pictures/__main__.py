"""``python -m tests.docs.pictures``: draw docs/pod-life.svg and docs/network-modes.svg anew."""

from __future__ import annotations

from tests.docs.pictures.drawn import DOCS, drawn

if __name__ == "__main__":
    for name, text in drawn().items():
        (DOCS / name).write_text(text)
