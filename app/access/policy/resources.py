"""The buckets and objects that a statement is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from app.access.policy import malformed
from app.access.policy.actions import BUCKET_ACTIONS, OBJECT_ACTIONS
from app.access.policy.document import one_of, texts
from app.access.policy.malformed import Malformed
from app.access.policy.variables import Template, Values
from app.access.policy.wildcards import Work

ARN_START = "arn:aws:s3:::"


class Resources(NamedTuple):
    """Names `BUCKET` and `BUCKET/KEY` of a statement: these, or all but these."""

    templates: Sequence[Template]
    negated: bool

    def include(self, name: str, values: Values, work: Work, *, allow: bool) -> bool:
        """Whether the statement is about a bucket or an object. Raises TooCostly.

        What has no meaning for a request names nothing; in `NotResource` of a statement that allows it lets none pass.
        """
        unknown = False
        for template in self.templates:
            pattern = template.pattern(values, work)
            if pattern is None:
                unknown = True
            elif pattern.matches(name, work):
                return not self.negated
        return self.negated and not (unknown and allow)


def parse(statement: dict[str, Any], bucket: str, actions: Sequence[frozenset[str]], *, variables: bool) -> Resources:
    """The resources of a statement in a policy of `bucket`; each of its `actions` must be possible on one of them.

    Raises Malformed, also for a resource that is not in the bucket.
    """
    found, negated = one_of(statement, "Resource")
    templates = []
    on_bucket = on_objects = negated
    for text in texts(found, malformed.RESOURCE):
        if not text.startswith(ARN_START):
            raise Malformed(malformed.RESOURCE)
        template = Template(text.removeprefix(ARN_START), variables=variables)
        of_bucket, of_objects = template.may_be(bucket), template.may_begin(bucket + "/")
        if not of_bucket and not of_objects:
            raise Malformed(malformed.RESOURCE)
        on_bucket |= of_bucket
        on_objects |= of_objects
        templates.append(template)
    for some in actions:
        if not (on_bucket and some & BUCKET_ACTIONS) and not (on_objects and some & OBJECT_ACTIONS):
            raise Malformed(malformed.MISMATCH)
    return Resources(templates, negated)
