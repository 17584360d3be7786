import pytest

from workers.api_server.core.status_errors import ApiError
from workers.api_server.store.selectors import all_hold, parse_field_selector, parse_label_selector

LABELS = {"app": "web", "tier": "front", "app.kubernetes.io/name": "web", "empty": "", "size": "12"}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web , tier = front", True),
        ("app=db", False),
        ("app!=db", True),
        ("missing!=x", True),
        ("missing=", False),
        ("empty=", True),
        ("app in (db, web)", True),
        ("app in (db,cache),tier=front", False),
        ("app notin (db)", True),
        (" app  in  (db,web) , tier", True),
        ("app in (),tier=front", False),
        (" ! missing ", True),
        ("missing notin (x)", True),
        ("app", True),
        ("!app", False),
        ("!missing,tier", True),
        ("app.kubernetes.io/name=web", True),
        ("size>11,size < 13", True),
        ("size>12", False),
        ("size<-1", False),
        ("app>1", False),
        ("missing<1", False),
    ],
)
def test_labels(selector: str, matches: bool) -> None:
    assert all_hold(parse_label_selector(selector), LABELS) is matches


NONSENSE = (
    *("=x", "a b", "a=b=c", "a in b", "a in (b", "a in (b,c", "a)", "a in (b),"),
    *(",", " , a", "a=b,", "-a=b", "a>b", "a>1.5", "a<", "a in (b c)", "a" * 3000),
)


@pytest.mark.parametrize("selector", NONSENSE)
def test_labels_that_make_no_sense(selector: str) -> None:
    with pytest.raises(ApiError) as error:
        parse_label_selector(selector)
    assert error.value.status.code == 400


def test_fields() -> None:
    known = {"metadata.name", "status.phase"}
    parsed = parse_field_selector("metadata.name=web,status.phase!=Failed", known)
    assert all_hold(parsed, {"metadata.name": "web", "status.phase": "Running"})
    assert not all_hold(parsed, {"metadata.name": "web", "status.phase": "Failed"})
    with pytest.raises(ApiError, match=r"field label not supported: spec\.x"):
        parse_field_selector("spec.x=1", known)
    with pytest.raises(ApiError, match="unable to parse"):
        parse_field_selector("metadata.name", known)
