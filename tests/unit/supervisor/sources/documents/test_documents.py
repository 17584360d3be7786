"""Bytes to plain data: what Kubernetes would see, bounded, with a place for every error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.host.clock import monotonic
from supervisor.sources.documents.model import MAX_DEPTH, MAX_DOCUMENTS, MAX_VALUES
from supervisor.sources.documents.reader import read_documents


def values(data: str | bytes) -> list[Any]:
    """All documents of a file without errors."""
    read = read_documents(data.encode() if isinstance(data, str) else data)
    assert read.errors == ()
    return [document.value for document in read.documents]


def only_error(data: str | bytes) -> tuple[int, str, str]:
    read = read_documents(data.encode() if isinstance(data, str) else data)
    assert len(read.errors) == 1, read.errors
    return read.errors[0].number, read.errors[0].field, read.errors[0].message


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        # sigs.k8s.io/yaml resolves as YAML 1.1 without its sexagesimal numbers, and keeps timestamps as text.
        ("yes", True),
        ("On", True),
        ("y", True),
        ("TRUE", True),
        ("no", False),
        ("off", False),
        ("N", False),
        ("False", False),
        ("yEs", "yEs"),
        ("~", None),
        ("Null", None),
        ("", None),
        ("'yes'", "yes"),
        ('"1"', "1"),
        ("! yes", "yes"),
        ("!!str 1", "1"),
        ("!!int 7", 7),
        ("!!float 7", 7),
        ("!!bool yes", True),
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("0644", 420),
        ("0o644", 420),
        ("-010", -8),
        ("0x1F", 31),
        ("0b101", 5),
        ("-0b101", -5),
        ("08", 8),
        ("1_000", 1000),
        ("1e3", 1000),
        ("1.0", 1),
        ("1.50", 1.5),
        (".5", 0.5),
        ("+.5", 0.5),
        ("1.", 1),
        ("1e-3", 0.001),
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", 18446744073709551616.0),
        ("9" * 70, "9" * 70),
        ("12:30", "12:30"),
        ("22:22:22", "22:22:22"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("1.2.3", "1.2.3"),
        ("0x", "0x"),
        ("0o8", "0o8"),
        ("1e", "1e"),
        (".", "."),
        ("100m", "100m"),
        ("<<", "<<"),
        ("1e999", "1e999"),
    ],
)
def test_scalars_mean_what_they_mean_to_kubernetes(scalar: str, value: object) -> None:
    assert values(f"a: {scalar}") == [{"a": value}]
    assert type(values(f"a: {scalar}")[0]["a"]) is type(value)


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (r'"it\'s"', "it's"),
        (r'"\\\'"', "\\'"),
        (r'"C:\\\\\/\x41\u00e9\t\0\N\_"', "C:\\\\/A\u00e9\t\0\x85\xa0"),
        (r"'C:\dir\'", "C:\\dir\\"),
        (r"it\'s", r"it\'s"),
    ],
)
def test_escapes_are_those_of_gos_parser(scalar: str, value: str) -> None:
    """goyaml.v2/scannerc.go, yaml_parser_scan_flow_scalar. The second document needs the slow parser in any case."""
    text = f'a: {scalar}\n---\nb: [1, "isn\\\'t"]\nc: {scalar}'
    assert values(text) == [{"a": value}, {"b": [1, "isn't"], "c": value}]


def test_after_an_unknown_escape_nothing_is_read() -> None:
    read = read_documents(b'a: 1\n---\nb: "\\q"')
    assert [document.value for document in read.documents] == [{"a": 1}]
    assert read.errors[0].message.startswith("line 3: found unknown escape character")


def test_keys_become_strings() -> None:
    assert values("1: a\ntrue: b\n1.5: c\nyEs: d") == [{"1": "a", "true": "b", "1.5": "c", "yEs": "d"}]


def test_keys_that_become_the_same_string_are_duplicates() -> None:
    assert only_error("true: a\ny: b") == (1, "true", "line 1: duplicate key")


def test_merge_keys() -> None:
    text = "base: &b {a: 1, c: 2}\nx:\n  <<: *b\n  a: 3\nz:\n  <<: [{q: 1, a: 9}, *b]\n"
    assert values(text)[0]["x"] == {"a": 3, "c": 2}
    assert values(text)[0]["z"] == {"q": 1, "a": 9, "c": 2}


def test_aliases_are_the_value() -> None:
    assert values("a: &x [1, {b: 2}]\nc: *x\nd: &x 5\ne: *x") == [
        {"a": [1, {"b": 2}], "c": [1, {"b": 2}], "d": 5, "e": 5}
    ]


def test_several_documents_are_counted_with_the_empty_ones() -> None:
    read = read_documents(b"---\na: 1\n---\n# nothing\n---\nb: 2\n...\n---\nc: 3\n")
    assert [(document.number, document.value) for document in read.documents] == [
        (1, {"a": 1}),
        (3, {"b": 2}),
        (4, {"c": 3}),
    ]
    assert read.errors == ()


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# only a comment\n", b"---\n---\n", b"\xef\xbb\xbf", b"null"])
def test_nothing_is_no_document_and_no_error(data: bytes) -> None:
    assert values(data) == []


def test_a_byte_order_mark_is_no_content() -> None:
    assert values(b"\xef\xbb\xbfa: 1") == [{"a": 1}]
    assert values(b'\xef\xbb\xbf{"a": 1}') == [{"a": 1}]


def test_json_documents_follow_each_other() -> None:
    assert values('\n{"a": 1}{"b": 2}\n---\n{"c": [1.5, "\\ud83d\\ude00", null, true]}\n') == [
        {"a": 1},
        {"b": 2},
        {"c": [1.5, "\U0001f600", None, True]},
    ]


def test_json_with_tabs_is_json() -> None:
    assert values('{\n\t"a":\t1\n}') == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "number", "field", "message"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2", 1, "b.c", "line 3: duplicate key"),
        ("x:\n- q: [1, {a: 1, a: 2}]", 1, "x[0].q[1].a", "line 2: duplicate key"),
        ("1: a\n'1': b", 1, "1", "line 1: duplicate key"),
        ("a: .inf", 1, "a", "line 1: not a number that JSON can say"),
        ("a: -.INF", 1, "a", "line 1: not a number that JSON can say"),
        ("a: .nan", 1, "a", "line 1: not a number that JSON can say"),
        ("a: !!binary aGk=", 1, "a", "line 1: this tag is not supported here"),
        ("a: !!int x", 1, "a", "line 1: this tag is not supported here"),
        ("a: !!int yes", 1, "a", "line 1: this tag is not supported here"),
        ("a: !mine x", 1, "a", "line 1: this tag is not supported here"),
        (
            "a: !!python/object:os.system {}",
            1,
            "a",
            "line 1: this tag is not supported",
        ),
        ("a: !!set {b}", 1, "a", "line 1: this tag is not supported"),
        ("? [a]\n: b", 1, "", "line 1: a key must be a scalar"),
        ("~: a", 1, "", "line 1: a key must not be null or a collection"),
        ("k: &k [a]\n*k : b", 1, "", "line 1: a key must not be null or a collection"),
        ("a: &a [*a]", 1, "a[0]", "line 1: unknown alias"),
        ("a: *nobody", 1, "a", "line 1: unknown alias"),
        ("a:\n  <<: 5", 1, "a", "line 2: << needs a mapping or a sequence of mappings"),
        ('{"a": 1, "a": 2}', 1, "", "duplicate key a"),
        ('{"a": 1}\n{"a": }', 2, "", "line 2: Expecting value"),
        ('{"a": NaN}', 1, "", "a number that JSON cannot say"),
        ('{"a": -Infinity}', 1, "", "a number that JSON cannot say"),
        ('{"a": 1e999}', 1, "", "a number that JSON cannot say"),
        ("{a: b}", 1, "", "line 1: Expecting property name enclosed in double quotes"),
    ],
)
def test_errors_have_a_place(text: str, number: int, field: str, message: str) -> None:
    assert only_error(text) == (number, field, message)


@pytest.mark.parametrize(
    ("text", "number", "message"),
    [
        ("a: [", 1, "line "),
        ("---\na: 1\n---\nb: c: d", 2, "line 4: mapping values are not allowed"),
        ("a: \x01", 1, "unacceptable character #x0001"),
        ("%YAML 9.9\n---\na: 1", 1, "line 1: found incompatible YAML document"),
        ("a:\n\tb: 1", 1, "line 2: is indented with a tab: YAML wants spaces"),
        ("a:\n  b:\n  \t- c\n", 1, "line 3: is indented with a tab: YAML wants spaces"),
        ("---\na: 1\n---\n\n\ta: 1", 2, "line 5: is indented with a tab: YAML wants spaces"),
    ],
)
def test_syntax_errors_are_the_parsers_own(text: str, number: int, message: str) -> None:
    found_number, field, found = only_error(text)
    assert (found_number, field) == (number, "")
    assert found.startswith(message)
    assert "\n" not in found


def test_binary_garbage_is_said_to_be_that() -> None:
    assert only_error(b"\x7fELF\x02\x01\xff\xfe") == (0, "", "is not UTF-8 text: byte 0xff at offset 6")
    assert only_error("a: 1".encode("utf-16")) == (0, "", "is not UTF-8 text: byte 0xff at offset 0")


def test_a_refused_document_leaves_the_others() -> None:
    read = read_documents(b"a: 1\n---\nb: &x [*y, {c: 1}]\nd: [1, 2]\n---\ne: 5\n")
    assert [document.value for document in read.documents] == [{"a": 1}, {"e": 5}]
    assert [(error.number, error.field) for error in read.errors] == [(2, "b[0]")]


def test_a_refused_json_document_leaves_the_others() -> None:
    read = read_documents(b'{"a": 1, "a": 2} {"b": 3}')
    assert [document.value for document in read.documents] == [{"b": 3}]


def test_an_error_repeats_little_of_the_file() -> None:
    for text in ("a: *" + "x" * 5000, "a: !" + "x" * 5000 + " b", "k" * 500 + ": &x [*y]", '{"a": ' + "1" * 5000 + "}"):
        _, field, message = only_error(text)
        assert len(field) + len(message) < 200


def bomb() -> str:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]" for i in range(9)]
    return "\n".join(lines)


def chain(length: int) -> str:
    return "x0: &x0 [1]\n" + "".join(f"x{i}: &x{i} [*x{i - 1}]\n" for i in range(1, length))


MERGE_BOMB = (
    "b: &b {" + ",".join(f"k{i}: 1" for i in range(5000)) + "}\n" + "".join(f"m{i}: {{<<: *b}}\n" for i in range(5000))
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(bomb(), f"more than {MAX_VALUES} values", id="billion laughs"),
        pytest.param(MERGE_BOMB, f"more than {MAX_VALUES} values", id="merge bomb"),
        pytest.param(chain(MAX_DEPTH + 1), f"nested more than {MAX_DEPTH} levels", id="chain of aliases"),
        pytest.param("[" * 1_000_000, "nest", id="sequences"),  # libyaml 0.2.6 looks ahead, and refuses it itself
        pytest.param("- " * 500_000, f"nested more than {MAX_DEPTH} levels", id="block sequences"),
        pytest.param('{"a":' + "[" * 1_000_000, "nested", id="JSON arrays"),
        pytest.param('{"a":' * 200_000, "nested too deeply", id="JSON objects"),
        pytest.param(
            '{"a":' + "[" * 70 + "]" * 70 + "}", f"nested more than {MAX_DEPTH} levels", id="JSON just too deep"
        ),
        pytest.param('{"a":[' + "1," * MAX_VALUES + "1]}", f"more than {MAX_VALUES} values", id="JSON values"),
        pytest.param("---\n" * 2000, f"more than {MAX_DOCUMENTS} documents", id="documents"),
        pytest.param("--- *a\n" * 2000, f"more than {MAX_DOCUMENTS} documents", id="documents that are refused"),
        pytest.param("%TAG !a! x\n" * 100_000 + "--- a", "more than 1000 times %TAG", id="tags' handles"),
        pytest.param("a: [" + "0," * 120_000 + r'"\'", ' + "[" * 9_000, "nested more than", id="an escape of Go's"),
        pytest.param("a: [" + "0," * 140_000 + r'"\'"]', "found unknown escape", id="an escape of Go's, far behind"),
        pytest.param("{" * 1_000_000, "line 1", id="braces"),
        pytest.param("a: " * 300_000, "line 1", id="keys"),
    ],
)
def test_hostile_files_are_refused_quickly(text: str, message: str) -> None:
    start = monotonic()
    read = read_documents(text.encode())
    assert message in read.errors[-1].message
    assert monotonic() - start < 30


def test_what_is_just_small_enough_is_read() -> None:
    assert values("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert len(values(chain(MAX_DEPTH - 1))[0]) == MAX_DEPTH - 1
    assert len(values("---\na: 1\n" * MAX_DOCUMENTS)) == MAX_DOCUMENTS


JSON_LIKE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON_LIKE, max_size=4))
def test_json_is_read_as_json_reads_it(value: dict[str, Any]) -> None:
    assert values(json.dumps(value)) == [value]


@given(st.binary(max_size=200) | st.text(alphabet="ab:-[]{},&*!|>'\"#? \n\t<1.~%@", max_size=80).map(str.encode))
def test_no_bytes_raise(data: bytes) -> None:
    read = read_documents(data)
    assert all(document.value is not None for document in read.documents)
    json.dumps([document.value for document in read.documents], allow_nan=False)
