"""Documents of lifecycle rules: what is read is shown again, and what is wrong is refused as AWS does."""

from __future__ import annotations

import pytest

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.errors import InvalidArgument, InvalidRequest, MalformedXML, NotImplemented, S3Error
from sluice_s3.app.s3.lifecycle import rules as lifecycle
from sluice_s3.app.store.lifecycle.evaluator import BASE, FILTER, Rule, Rules, to_setting
from sluice_s3.app.store.lifecycle.storage_classes import Transition

DAYS = "<Expiration><Days>3</Days></Expiration>"
ON = "<Status>Enabled</Status>"
MORE = "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>"


def document(*rules: str) -> bytes:
    inner = "".join(f"<Rule>{rule}</Rule>" for rule in rules)
    root = f'<LifecycleConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inner}</LifecycleConfiguration>'
    return root.encode()


def parse(*rules: str) -> tuple[Rule, ...]:
    return lifecycle.parse_rules(document(*rules), None).rules


FORMS = [
    (f"<Prefix>a&amp;b</Prefix>{ON}{DAYS}", Rule("", True, BASE, prefix="a&b", days=3)),
    (f"<Filter/>{ON}{DAYS}", Rule("", True, FILTER, days=3)),
    (f"<Filter><Prefix></Prefix></Filter>{ON}{DAYS}", Rule("", True, "Prefix", prefix="", days=3)),
    (
        f"<Filter><Tag><Key>k</Key><Value></Value></Tag></Filter>{ON}{DAYS}",
        Rule("", True, "Tag", tags=(("k", ""),), days=3),
    ),
    (
        f"<Filter><ObjectSizeGreaterThan>0</ObjectSizeGreaterThan></Filter><Status>Disabled</Status>{DAYS}",
        Rule("", False, "ObjectSizeGreaterThan", larger=0, days=3),
    ),
    (
        f"<Filter><And><Prefix>p</Prefix><Tag><Key>a</Key><Value>1</Value></Tag><Tag><Key>b</Key><Value>2</Value></Tag>"
        f"<ObjectSizeGreaterThan>4</ObjectSizeGreaterThan><ObjectSizeLessThan>9</ObjectSizeLessThan></And></Filter>"
        f"{ON}{DAYS}",
        Rule("", True, "And", prefix="p", tags=(("a", "1"), ("b", "2")), larger=4, smaller=9, days=3),
    ),
    (
        f"<Prefix/>{ON}<Expiration><Date>2030-01-01T00:00:00.000Z</Date></Expiration>",
        Rule("", True, BASE, prefix="", date=1_893_456_000_000),
    ),
    (
        f"<Prefix/>{ON}<Expiration><Date>2030-01-01</Date></Expiration>",
        Rule("", True, BASE, prefix="", date=1_893_456_000_000),
    ),
    (
        f"<Filter/>{ON}<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>{MORE}",
        Rule("", True, FILTER, markers=True, abort_days=1),
    ),
    (
        f"<Filter/>{ON}<NoncurrentVersionExpiration><NoncurrentDays>2</NoncurrentDays>"
        "<NewerNoncurrentVersions>5</NewerNoncurrentVersions></NoncurrentVersionExpiration>",
        Rule("", True, FILTER, noncurrent_days=2, newer=5),
    ),
]


@pytest.mark.parametrize(("given", "wanted"), FORMS)
def test_every_form_is_read_and_shown(given: str, wanted: Rule) -> None:
    (rule,) = parse(f"<ID>one</ID>{given}")
    assert rule == wanted._replace(id="one")
    shown = lifecycle.render_rules(Rules((rule,)))
    assert lifecycle.parse_rules(shown, None).rules == (rule,)
    (named,) = parse(given)
    assert named == wanted._replace(id=named.id)
    assert len(named.id) == 48


EXPIRATION = "<Prefix/>" + ON + "<Expiration>{}</Expiration>"
NONCURRENT = "<Filter/>" + ON + "<NoncurrentVersionExpiration>{}</NoncurrentVersionExpiration>"
TAG = "<Tag><Key>k</Key><Value>v</Value></Tag>"
WRONG: list[tuple[tuple[str, ...], type[S3Error], str]] = [
    ((), MalformedXML, ""),
    ((f"{ON}{DAYS}",), MalformedXML, ""),
    ((f"<Prefix/><Status>enabled</Status>{DAYS}",), MalformedXML, ""),
    ((f"<Prefix/>{DAYS}",), MalformedXML, ""),
    ((f"<Prefix/>{ON}{DAYS}<Other/>",), MalformedXML, ""),
    ((f"<Prefix/>{ON}{DAYS}{DAYS}",), MalformedXML, ""),
    ((f"<Prefix/>{ON}",), InvalidRequest, "At least one action"),
    ((f"<ID>{'i' * 256}</ID><Prefix/>{ON}{DAYS}",), InvalidArgument, "ID length"),
    ((f"<ID>i</ID><Prefix>a</Prefix>{ON}{DAYS}", f"<ID>i</ID><Prefix>b</Prefix>{ON}{DAYS}"), InvalidArgument, "unique"),
    (
        (EXPIRATION.format("<Days>0</Days>"),),
        InvalidArgument,
        "'Days' for Expiration action must be a positive integer",
    ),
    ((EXPIRATION.format("<Days>-1</Days>"),), InvalidArgument, "positive"),
    ((EXPIRATION.format("<Days>x</Days>"),), MalformedXML, ""),
    ((EXPIRATION.format("<Date>9999-12-31T01:00:00-23:00</Date>"),), MalformedXML, ""),
    ((EXPIRATION.format("<Days>2147483648</Days>"),), MalformedXML, ""),
    ((EXPIRATION.format("<Days>1</Days><Date>2030-01-01</Date>"),), MalformedXML, ""),
    ((EXPIRATION.format(""),), MalformedXML, ""),
    ((EXPIRATION.format("<Date>20200101</Date>"),), MalformedXML, ""),
    ((EXPIRATION.format("<Date>2030-01-01T01:00:00Z</Date>"),), InvalidArgument, "midnight"),
    ((EXPIRATION.format("<ExpiredObjectDeleteMarker>yes</ExpiredObjectDeleteMarker>"),), MalformedXML, ""),
    ((NONCURRENT.format("<NewerNoncurrentVersions>1</NewerNoncurrentVersions>"),), MalformedXML, ""),
    ((NONCURRENT.format("<NoncurrentDays>0</NoncurrentDays>"),), InvalidArgument, "NoncurrentDays"),
    (
        (
            NONCURRENT.replace("<Filter/>", "<Prefix/>").format(
                "<NoncurrentDays>1</NoncurrentDays><NewerNoncurrentVersions>1</NewerNoncurrentVersions>"
            ),
        ),
        InvalidRequest,
        "Lifecycle V2",
    ),
    ((f"<Filter><Prefix>a</Prefix>{TAG}</Filter>{ON}{DAYS}",), MalformedXML, ""),
    ((f"<Filter><And>{TAG}</And></Filter>{ON}{DAYS}",), MalformedXML, ""),
    ((f"<Filter><And>{TAG}{TAG}</And></Filter>{ON}{DAYS}",), InvalidRequest, "Duplicate Tag Keys"),
    ((f"<Filter><Tag><Key></Key><Value/></Tag></Filter>{ON}{DAYS}",), MalformedXML, ""),
    ((f"<Filter><ObjectSizeLessThan>0</ObjectSizeLessThan></Filter>{ON}{DAYS}",), InvalidRequest, "between 1 and"),
    (
        (
            "<Filter><And><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan><ObjectSizeLessThan>5</ObjectSizeLessThan>"
            f"</And></Filter>{ON}{DAYS}",
        ),
        InvalidRequest,
        "greater than",
    ),
    ((f"<Filter/>{ON}{DAYS}", f"<Prefix/>{ON}{DAYS}"), InvalidRequest, "Base level prefix"),
    ((f"<Prefix/>{ON}{DAYS}", f"<Filter/>{ON}{DAYS}"), InvalidRequest, "Filter element"),
    ((f"<Filter>{TAG}</Filter>{ON}{MORE}",), InvalidRequest, "cannot be specified with Tags"),
    (
        (
            f"<Filter>{TAG}</Filter>{ON}<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>"
            "</Expiration>",
        ),
        InvalidRequest,
        "cannot be specified with Tags",
    ),
    ((f"<Prefix>{'p' * 1025}</Prefix>{ON}{DAYS}",), InvalidRequest, "maximum size"),
    (tuple(f"<Prefix>{number}</Prefix>{ON}{DAYS}" for number in range(1001)), InvalidRequest, "1000"),
]


@pytest.mark.parametrize(("given", "error", "message"), WRONG)
def test_what_is_wrong_is_refused(given: tuple[str, ...], error: type[S3Error], message: str) -> None:
    with pytest.raises(error) as caught:
        parse(*given)
    assert message in caught.value.text


TRANSITION = f"<Prefix/>{ON}<Transition>{{}}</Transition>"
GLACIER = "<StorageClass>GLACIER</StorageClass>"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (f"<Days>1</Days>{GLACIER}", NotImplemented),
        (f"<Date>2030-01-01</Date>{GLACIER}", NotImplemented),
        (f"<Date>20300101</Date>{GLACIER}", MalformedXML),
        (f"<Date>2030-01-01T03:00:00Z</Date>{GLACIER}", InvalidArgument),
        (f"<Days>-1</Days>{GLACIER}", InvalidArgument),
        (f"<Days>1</Days><Date>2030-01-01</Date>{GLACIER}", MalformedXML),
        (GLACIER, MalformedXML),
        ("<Days>1</Days>", MalformedXML),
        ("<Days>1</Days><StorageClass>STANDARD</StorageClass>", MalformedXML),
        ("<Days>29</Days><StorageClass>STANDARD_IA</StorageClass>", InvalidArgument),
        (f"<Days>1</Days>{GLACIER}</Transition><Transition><Days>2</Days>{GLACIER}", InvalidRequest),
    ],
)
def test_transitions_are_checked_and_refused(given: str, error: type[S3Error]) -> None:
    with pytest.raises(error):
        parse(TRANSITION.format(given))
    if "Date" not in given:
        noncurrent = TRANSITION.format(given).replace("Transition>", "NoncurrentVersionTransition>")
        with pytest.raises(error):
            parse(noncurrent.replace("Days>", "NoncurrentDays>"))


MOVED = (
    "<Transition><Days>30</Days><StorageClass>STANDARD_IA</StorageClass></Transition>"
    "<Transition><Days>60</Days><StorageClass>GLACIER</StorageClass></Transition>",
    "<NoncurrentVersionTransition><NoncurrentDays>0</NoncurrentDays><NewerNoncurrentVersions>2"
    "</NewerNoncurrentVersions><StorageClass>GLACIER_IR</StorageClass></NoncurrentVersionTransition>",
)
SLOW = frozenset({"STANDARD_IA", "GLACIER", "GLACIER_IR"})


def test_transitions_to_classes_with_a_store_are_taken_and_shown() -> None:
    (rule,) = rules = lifecycle.parse_rules(document(f"<ID>x</ID><Filter/>{ON}{''.join(MOVED)}"), None, SLOW).rules
    assert rule.transitions == (Transition("STANDARD_IA", 30), Transition("GLACIER", 60))
    assert rule.older_transitions == (Transition("GLACIER_IR", 0, None, 2),)
    assert to_setting(Rules(rules, "m"))["rules"][0]["transitions"][1][:2] == ["GLACIER", 60]
    shown = lifecycle.render_rules(Rules(rules, "m"))
    assert all(one.encode() in shown for one in MOVED)
    assert lifecycle.parse_rules(shown, None, SLOW).rules == rules
    dated = f"<Transition><Date>2030-01-01</Date>{GLACIER}</Transition>"
    found = lifecycle.parse_rules(document(f"<ID>y</ID><Filter/>{ON}{dated}"), None, SLOW)
    assert lifecycle.parse_rules(lifecycle.render_rules(found), None, SLOW) == found


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (f"{MOVED[0]}<Expiration><Days>60</Days></Expiration>", InvalidArgument),
        (f"{MOVED[0]}<Expiration><Days>61</Days></Expiration>", None),
        (f"{MOVED[0]}<Expiration><Date>2030-01-01</Date></Expiration>", InvalidRequest),
        (MOVED[0].replace("60", "59"), InvalidArgument),
        (MOVED[1].replace("2</Newer", "0</Newer"), InvalidArgument),
        (MOVED[1].replace("GLACIER_IR", "DEEP_ARCHIVE"), NotImplemented),
        (
            f"{MOVED[1].replace('>0<', '>3<')}<NoncurrentVersionExpiration><NoncurrentDays>3</NoncurrentDays>"
            "</NoncurrentVersionExpiration>",
            InvalidArgument,
        ),
    ],
)
def test_transitions_in_an_order_that_cannot_be(given: str, error: type[S3Error] | None) -> None:
    if error is None:
        lifecycle.parse_rules(document(f"<Filter/>{ON}{given}"), None, SLOW)
        return
    with pytest.raises(error):
        lifecycle.parse_rules(document(f"<Filter/>{ON}{given}"), None, SLOW)


def test_a_thousand_rules_are_taken() -> None:
    assert len(parse(*(f"<Prefix>{number}</Prefix>{ON}{DAYS}" for number in range(1000)))) == 1000


def test_the_least_size_for_transitions() -> None:
    given = document(f"<Prefix/>{ON}{DAYS}")
    assert lifecycle.parse_rules(given, None).minimum == "all_storage_classes_128K"
    assert lifecycle.parse_rules(given, "varies_by_storage_class").minimum == "varies_by_storage_class"
    with pytest.raises(InvalidRequest):
        lifecycle.parse_rules(given, "none")


def test_a_bucket_without_rules_has_no_header() -> None:
    assert lifecycle.expiration_header(Bucket(1, "b", "o", "r", 0), 86400, "k", 1, 1, "{}") == []
    assert lifecycle.abort_header(Bucket(1, "b", "o", "r", 0, settings='{"cors":[]}'), 86400, "k", 1) == []
