"""Kubernetes' JSONPath templates, on the kinds of objects and templates that client-go's own tests have."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.cli.options import Failure
from supervisor.cli.output.custom_columns import CustomColumns
from supervisor.cli.output.jsonpath import JsonPath
from supervisor.cli.output.jsonpath_parser import JsonPathError, relaxed
from supervisor.cli.output.sorting import sorted_by

NODES: Any = {
    "kind": "List",
    "items": [
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.1", "labels": {"kubernetes.io/hostname": "127.0.0.1"}},
            "status": {"capacity": {"cpu": "4"}, "ready": True, "addresses": [{"type": "L", "address": "127.0.0.1"}]},
        },
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.2", "labels": {"kubernetes.io/hostname": "127.0.0.2"}},
            "status": {
                "capacity": {"cpu": "8"},
                "ready": False,
                "addresses": [{"type": "L", "address": "127.0.0.2"}, {"type": "another", "address": "127.0.0.3"}],
            },
        },
    ],
    "users": [{"name": "myself", "user": {}}, {"name": "e2e", "user": {"username": "admin", "password": "secret"}}],
}
TYPES: Any = {
    "bools": [True, False, True, False],
    "floats": [1.0, 2.2, 3.3, 4.0],
    "strings": ["one", "two", "three", "four"],
    "mixed": [True, "one", 1, 1.1],
    "maps": [{"name": "one", "value": 1}, {"name": "two", "value": 2.02}, {"name": "three"}, {"name": "<&>"}],
    "colors": [{"color": "red", "new": True, "price": 19.95}, {"color": "green", "new": False, "price": 20.01}],
}


@pytest.mark.parametrize(
    ("template", "obj", "text"),
    [
        ("hello jsonpath", None, "hello jsonpath"),
        ("{..}", [1, 2, 3], "[1,2,3]"),
        ("{[?(@<5)]}", [2, 6, 3, 7], "2 3"),
        ('{"{"}', None, "{"),
        ("{[1,3,4]}", [0, 1, 2, 3, 4], "1 3 4"),
        ("{[0:2]}", ["Monday", "Tuesday"], "Monday Tuesday"),
        ("{ .bools }", TYPES, "[true,false,true,false]"),
        ("{ .bools[-1] }", TYPES, "false"),
        ("{ .bools[:4:2] }", TYPES, "true true"),
        ("{ .floats[0] }", TYPES, "1"),
        ("{ .floats[0:2] }", TYPES, "1 2.2"),
        ("{ .strings[-2] }", TYPES, "three"),
        ("{ .strings[2:2] }", TYPES, ""),
        ("{ .mixed[0:2] }", TYPES, "true one"),
        ("{ .maps[1::2] }", TYPES, '{"name":"two","value":2.02} {"name":"\\u003c\\u0026\\u003e"}'),
        ("{.colors[?(@.new==true)].color}", TYPES, "red"),
        ("{.colors[?(@.color=~'.*ed.*')].color}", TYPES, "red"),
        ("{.colors[?(@.price>=20)].color}", TYPES, "green"),
        ("{.colors[?(@.none==1)].color}", TYPES, ""),
        ("{range .items[*]}{.metadata.name}, {end}{.kind}", NODES, "127.0.0.1, 127.0.0.2, List"),
        (r'{range .items[*]}{.metadata.name}{"\t"}{end}', NODES, "127.0.0.1\t127.0.0.2\t"),
        ("{.items[*].status.addresses[*].address}", NODES, "127.0.0.1 127.0.0.2 127.0.0.3"),
        (
            "{range .items[*]}{range .status.addresses[*]}{.address}, {end}{end}",
            NODES,
            "127.0.0.1, 127.0.0.2, 127.0.0.3, ",
        ),
        (
            "{.items[*]['metadata.name', 'status.capacity']}",
            NODES,
            '127.0.0.1 127.0.0.2 {"cpu":"4"} {"cpu":"8"}',
        ),
        (
            "{range .items[*]}[{.metadata.name}, {.status.capacity}] {end}",
            NODES,
            '[127.0.0.1, {"cpu":"4"}] [127.0.0.2, {"cpu":"8"}] ',
        ),
        ('{.users[?(@.name=="e2e")].user.password}', NODES, "secret"),
        (r"{.items[0].metadata.labels.kubernetes\.io/hostname}", NODES, "127.0.0.1"),
        (r'{.items[?(@.metadata.labels.kubernetes\.io/hostname=="127.0.0.1")].kind}', NODES, "None"),
        ("{.items[?(@..ready==true)].metadata.name}", NODES, "127.0.0.1"),
        ("{..name}", NODES, "127.0.0.1 127.0.0.2 myself e2e"),
        ("{...name}", NODES, "127.0.0.1 127.0.0.2 myself e2e"),
        ("{.users[?(@.user.username)].name}", NODES, "e2e"),
        ("{range .items[*]}{.x}{end}", {"items": []}, ""),
        ("{range .items[*]}{range .a[*]}{.b}{end}{end}|{.kind}", {"items": [], "kind": "K"}, "|K"),
        ("{range .users[*]}{.name} {end}{range .items[*]}{.kind} {end}", NODES, "myself e2e None None "),
        ("before-{.hello}after", NODES, "before-after"),
        ("{.a}{.b}", {"a": None, "b": False}, "false"),
        (r"{'it\'s'}", None, "it's"),
    ],
)
def test_what_a_template_finds(template: str, obj: Any, text: str) -> None:
    assert JsonPath(template).render(obj) == text


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{hello}", "unrecognized identifier hello"),
        ("{.hello}", "hello is not found"),
        ("{.users[0].user[0]}", r"map\[string\]interface \{\} is not array or slice"),
        ("{.users[5]}", "array index out of bounds: index 5, length 2"),
        ("{.users[?(@.name<>10)]}", "unrecognized filter operator <>"),
        ("{range .users[*]}{@}{end}{end}", "not in range, nothing to end"),
        ("{.users[0}", "unterminated array"),
        ("{.users", "unclosed action"),
        ('{"x}', "unterminated quoted string"),
        (r'{"\q"}', "invalid syntax"),
        ("{.users[x]}", "invalid array index x"),
        ("{.users[::0]}", "step must be > 0"),
        ("{....name}", "invalid multiple recursive descent"),
        ("{.users[?(@.name=~1)]}", "regexp search only support string"),
        ("{.users[?(@.name>1)]}", "incompatible types for comparison"),
        ("{%}", "unrecognized character in action"),
    ],
)
def test_what_does_not_fit_is_said(template: str, words: str) -> None:
    with pytest.raises(JsonPathError, match=words):
        JsonPath(template, allow_missing_keys=False).render(NODES)


def test_deep_objects_are_walked_without_recursion() -> None:
    deep: Any = {"name": "end"}
    for _ in range(20_000):
        deep = {"a": deep}
    assert JsonPath("{..name}").render(deep) == "end"


@pytest.mark.parametrize("text", ["x.y", ".x.y", "{x.y}", "{.x.y}"])
def test_paths_without_braces(text: str) -> None:
    assert relaxed(text) == "{.x.y}"


def test_columns() -> None:
    columns = CustomColumns.parsed(
        "NAME:.metadata.name,CPU:status.capacity,NONE:.x,ALL:.status.addresses[*].type", headers=True
    )
    assert columns.format(NODES["items"]) == (
        "NAME        CPU          NONE     ALL\n"
        "127.0.0.1   map[cpu:4]   <none>   L\n"
        "127.0.0.2   map[cpu:8]   <none>   L,another\n"
    )
    file = CustomColumns.parsed("NAME  READY\n.metadata.name  .status.ready\n", headers=False)
    assert file.format(NODES["items"][:1]) == "127.0.0.1   true\n"
    with pytest.raises(JsonPathError, match="expected <header>:<json-path-expr>"):
        CustomColumns.parsed("NAME", headers=True)


def test_sorting() -> None:
    def ordered(*values: Any) -> list[Any]:
        objects = [{} if value is None else {"a": value} for value in values]
        return [obj.get("a") for obj in sorted_by(objects, ".a")]

    assert ordered(3, 1, None, 2) == [None, 1, 2, 3]
    assert ordered("web-10", "web-2", "db") == ["db", "web-2", "web-10"]
    assert ordered("1Gi", "500Mi", "2") == ["2", "500Mi", "1Gi"]
    assert ordered("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z") == ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]
    with pytest.raises(Failure, match="couldn't find any field with path"):
        sorted_by([{"b": 1}], ".a")
