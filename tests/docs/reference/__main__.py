"""``python -m tests.docs.reference``: write the generated pages of docs/ anew."""

from __future__ import annotations

from tests.docs.reference.pages import DOCS, rendered

if __name__ == "__main__":
    for name, text in rendered().items():
        (DOCS / name).write_text(text)
