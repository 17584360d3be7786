from __future__ import annotations

from ipc.host.log.last_words import LastWords


def test_the_same_words_are_said_once_in_a_row() -> None:
    said = LastWords()
    assert [said.are_new(words) for words in ("a", "a", "b", "a", "a")] == [True, False, True, True, False]


def test_words_are_news_again_after_all_was_well() -> None:
    said = LastWords()
    assert [said.are_new(words) for words in ("a", "", "a")] == [True, False, True]
    said.forget()
    assert said.are_new("a")
