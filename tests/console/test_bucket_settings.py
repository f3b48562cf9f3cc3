"""Settings of buckets: every form writes what it has read, and what no form can show stays as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console.tab import Tab

RULES = [
    {
        "ID": "narrow",
        "Status": "Enabled",
        "Filter": {"And": {"Prefix": "a&<b/", "Tags": [{"Key": "k", "Value": "v"}], "ObjectSizeGreaterThan": 5}},
        "Expiration": {"Days": 3},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 3, "NewerNoncurrentVersions": 2},
    },
    {
        "ID": "uploads",
        "Status": "Disabled",
        "Filter": {},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 3},
        "Expiration": {"ExpiredObjectDeleteMarker": True},
    },
    {"ID": "day", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Date": "2030-01-01T00:00:00Z"}},
]
ROUTING = [
    {"Condition": {"KeyPrefixEquals": "a"}, "Redirect": {"ReplaceKeyPrefixWith": "", "HttpRedirectCode": "302"}},
    {"Redirect": {"HostName": "x.example", "Protocol": "https"}},
]
CORS = [
    {
        "ID": "x",
        "AllowedHeaders": ["*"],
        "AllowedMethods": ["GET"],
        "AllowedOrigins": ["https://a"],
        "MaxAgeSeconds": 3,
    },
    {"AllowedMethods": ["PUT"], "AllowedOrigins": ["*"], "ExposeHeaders": ["ETag"]},
]
LOG = {
    "TargetPrefix": "log/",
    "TargetObjectKeyFormat": {"PartitionedPrefix": {"PartitionDateSource": "DeliveryTime"}},
}
KINDS = [
    "acl", "cors", "lifecycle", "logging", "object-lock", "ownership", "public-access", "request-payment", "tags",
    "versioning", "website",
]  # fmt: skip
READ_AND_WRITE = """async ([bucket, kinds]) => {
  const base = document.querySelector("script[type=module]").src.replace("main.js", "rooms/buckets/settings/");
  const { loadKind } = await import(base + "catalog.js");
  const { readSource, writeSource } = await import(base + "use-setting.js");
  const found = {};
  for (const name of kinds) {
    const kind = await loadKind(name);
    const { source, value, shown, note } = await readSource(kind, bucket);
    const wrong = Object.values(kind.problems?.(value, { encryption_available: true }) ?? {}).filter(Boolean);
    if (name !== "object-lock") await writeSource(kind, bucket, kind.write(value), note);
    found[name] = [source !== null, shown, wrong, (await readSource(kind, bucket)).source === source];
  }
  return found;
}"""


def configure(s3: Any, bucket: str, log_bucket: str) -> None:
    """Give a bucket each setting, with everything that a form can show."""
    policy = {"Effect": "Allow", "Principal": {"Service": "logging.s3.amazonaws.com"}, "Action": "s3:PutObject"}
    statement = {**policy, "Resource": f"arn:aws:s3:::{log_bucket}/*"}
    s3.put_bucket_policy(Bucket=log_bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    status = {"LoggingEnabled": {"TargetBucket": log_bucket, **LOG}}
    s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus=status)
    s3.put_bucket_lifecycle_configuration(
        Bucket=bucket,
        LifecycleConfiguration={"Rules": RULES},
        TransitionDefaultMinimumObjectSize="varies_by_storage_class",
    )
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": CORS})
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "a b", "Value": ""}, {"Key": "é", "Value": "1"}]})
    site = {"IndexDocument": {"Suffix": "i.html"}, "ErrorDocument": {"Key": "e&"}, "RoutingRules": ROUTING}
    s3.put_bucket_website(Bucket=bucket, WebsiteConfiguration=site)
    s3.put_bucket_request_payment(Bucket=bucket, RequestPaymentConfiguration={"Payer": "Requester"})
    s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls={"Rules": [{"ObjectOwnership": "ObjectWriter"}]})
    s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration={"BlockPublicPolicy": True})
    s3.put_bucket_acl(Bucket=bucket, ACL="public-read")


def test_forms_write_what_they_read(root_tab: Tab, s3: Any, bucket: str) -> None:
    """Nothing of a setting is lost, not even its header."""
    locked = f"{bucket}-locked"
    s3.create_bucket(Bucket=locked, ObjectLockEnabledForBucket=True)
    retention = {"Mode": "GOVERNANCE", "Years": 3}
    lock = {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": retention}}
    s3.put_object_lock_configuration(Bucket=locked, ObjectLockConfiguration=lock)
    configure(s3, locked, bucket)
    page = root_tab.open("/console/buckets")
    found = page.evaluate(READ_AND_WRITE, [locked, KINDS])
    assert found == {kind: [True, True, [], True] for kind in KINDS}
    rules = s3.get_bucket_lifecycle_configuration(Bucket=locked)
    assert rules["TransitionDefaultMinimumObjectSize"] == "varies_by_storage_class"
    page.goto(f"/console/buckets/{locked}/settings")
    for words in ("3 rules, 1 of them off", "everybody: READ", f"to {bucket}/log/", "kept 3 years (governance)"):
        expect(page.get_by_text(words)).to_be_visible()
    root_tab.check_accessibility()


def test_a_rule_is_built_by_its_form(root_tab: Tab, s3: Any, bucket: str) -> None:
    page = root_tab.open(f"/console/buckets/{bucket}/settings/lifecycle")
    page.get_by_role("button", name="Add a rule").click()
    page.get_by_label("Keys that begin with").fill("tmp/")
    page.get_by_label("Expire current objects").select_option("days")
    page.get_by_label("Days after they were written").fill("0")
    expect(page.get_by_role("alert")).to_contain_text("At least 1.")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.get_by_label("Days after they were written").fill("7")
    root_tab.check_accessibility()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_text("Lifecycle: saved.")).to_be_visible()
    (rule,) = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    assert (rule["Filter"], rule["Expiration"]) == ({"Prefix": "tmp/"}, {"Days": 7})
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    page.get_by_role("button", name="Remove…").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("Lifecycle: removed.")).to_be_visible()
    with pytest.raises(s3.exceptions.ClientError, match="NoSuchLifecycleConfiguration"):
        s3.get_bucket_lifecycle_configuration(Bucket=bucket)


def test_a_website_begins_with_an_index(root_tab: Tab, s3: Any, bucket: str) -> None:
    """What the form offers is saved as it is; once it is saved there is nothing to save."""
    page = root_tab.open(f"/console/buckets/{bucket}/settings/website")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Website: saved.")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    assert s3.get_bucket_website(Bucket=bucket)["IndexDocument"] == {"Suffix": "index.html"}


def test_what_a_form_cannot_show_opens_as_xml(root_tab: Tab, s3: Any, bucket: str) -> None:
    """A lifecycle rule of the first version of the API; saving its XML changes what was changed, and no more."""
    old = {"ID": "old", "Prefix": "logs/", "Status": "Enabled", "Expiration": {"Days": 3}}
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [old]})
    page = root_tab.open(f"/console/buckets/{bucket}/settings/lifecycle")
    expect(page.get_by_text("something that the form cannot show")).to_be_visible()
    expect(page.get_by_role("button", name="Show as a form")).to_be_disabled()
    editor = page.get_by_label("XML of lifecycle")
    text = editor.input_value()
    editor.fill(text.replace("</Rule>", ""))
    expect(page.get_by_role("alert")).to_contain_text("Line ")
    editor.fill(text.replace("<Days>3<", "<Days>4<"))
    root_tab.check_accessibility()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Lifecycle: saved.")).to_be_visible()
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == [{**old, "Expiration": {"Days": 4}}]


FAULTS = {
    "": "Write XML here.",
    "<a>": "Line 1: <a> is not closed.",
    "<a>\n<b></a>": "Line 2: </a> closes <b>.",
    "<a/>\n<b/>": "Line 2: There is a second root element.",
    "<a>\n &x; </a>": "Line 2: Write &amp; for the sign &.",
    "<a b=c></a>": "Line 1: <a is not closed by >.",
    "<!DOCTYPE a>\n<a/>": "Line 1: A DOCTYPE is not allowed.",
    "x": "Line 1: Text stands outside of all elements.",
    "<b/>": "The document must be <a>, and is <b>.",
    '<?xml version="1.0"?>\n<!-- x --><a b="&amp;"><c x=\'1\'/>&#65;<![CDATA[<&]]></a>\n': None,
}


JSON_FAULTS = {
    '{\n "a": oops}': "Line 2, column 7",
    '{"a": 1,\n "a": 2}': "stands here twice",
    '{"a": 1,}': "comma too much",
    '["a" "b"]': "A comma or ]",
    '{"a": "b\n"}': "no end in its line",
    '{"a": [1': "ends too early",
    "{} x": "behind the end",
    '{"a": [1, -0.5e3, true, null, {"\\u00e9": ""}], "b": {}}': None,
}


def test_faults_are_found_with_their_lines(root_tab: Tab) -> None:
    """Without the browser's parsers: one names no position, the page of the other breaks the security policy."""
    page = root_tab.open("/console/buckets")
    found = page.evaluate(
        """async (sources) => {
          const main = document.querySelector("script[type=module]").src;
          const base = main.replace("main.js", "rooms/buckets/settings/");
          const { xmlProblem } = await import(base + "shape.js");
          const { findJsonFault } = await import(base + "policy/json-fault.js");
          const xml = sources[0].map((source) => xmlProblem(source, "a")?.message ?? null);
          return [xml, sources[1].map((source) => findJsonFault(source)?.message ?? null)];
        }""",
        [list(FAULTS), list(JSON_FAULTS)],
    )
    assert dict(zip(FAULTS, found[0], strict=True)) == FAULTS
    for (source, words), message in zip(JSON_FAULTS.items(), found[1], strict=True):
        assert message is None if words is None else words in message, source
