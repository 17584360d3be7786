"""Pages of reference are those of the code, and say of everything what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from ipc.link.messages import event_reasons
from tests.docs.reference import commands, events, settings
from tests.docs.reference.pages import DOCS, plain, rendered

PAGES = rendered()
PACKAGES = {"supervisor": "master", "workers": "worker"}


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_that_of_the_code(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name], "python -m tests.docs.reference"


def test_every_reason_has_a_row_and_every_row_a_reason() -> None:
    listed = [(row.name, row.type) for row in events.rows()]
    assert sorted(listed) == sorted(events.sources())


def _users() -> Iterator[tuple[str, str]]:
    """Reason and type of the code's rows, with who says it by the package of each file that names the row."""
    for package, who in PACKAGES.items():
        text = "\n".join(path.read_text() for path in (events.ROOT / package).rglob("*.py"))
        rows = (getattr(event_reasons, name) for name in set(re.findall(r"\bevent_reasons\.([A-Z_]+)\b", text)))
        yield from ((f"{row.reason} {row.type}", who) for row in rows)


def test_who_says_it_is_master_or_worker_as_the_code_has_it() -> None:
    saying = {f"{row.name} {row.type}": row.who for row in events.rows()}
    users = list(_users())
    assert [user for user in users if user[1] not in saying[user[0]]] == []
    assert len(users) > 40


def test_every_setting_is_on_the_page_once_with_its_default() -> None:
    for setting in settings.every_setting():
        lines = [line for line in PAGES["settings.md"].splitlines() if line.startswith(f"| `{setting.name}` |")]
        assert len(lines) == 1, setting.name
        assert f"`{setting.default}`" in lines[0] or not setting.default


def test_comments_have_the_ranges_and_choices_of_the_code() -> None:
    words = {comment.name: comment.words.partition(". ")[0] for comment in settings.comments()}
    ranged = [each for each in settings.every_setting() if each.range and each.range != "0 to 65535"]
    assert [each.name for each in ranged if each.range not in words[each.name].split(", ")] == []
    chosen = [(each.name, choice) for each in settings.every_setting() for choice in each.choices]
    assert [(name, choice) for name, choice in chosen if choice not in words[name]] == []
    assert (len(ranged) > 30, len(chosen) > 10) == (True, True)


def test_every_command_and_option_is_on_the_page() -> None:
    page = PAGES["commands.md"]
    for context in commands.every_command():
        section = page.partition(f"# {context.command_path}\n")[2].partition("\n## ")[0]
        assert section, context.command_path
        names = [name for option in commands.options(context) for name in option.opts]
        assert [name for name in names if name not in section] == [], context.command_path


def test_text_means_nothing_to_markdown() -> None:
    assert plain("a|b <c> *d* `e*f|g`") == "a\\|b &lt;c> \\*d\\* `e*f\\|g`"
