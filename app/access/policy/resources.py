"""The buckets and objects of a statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sluice_s3.app.access.policy import errors
from sluice_s3.app.access.policy.actions import BUCKET_ACTIONS, OBJECT_ACTIONS
from sluice_s3.app.access.policy.document import find_either, texts
from sluice_s3.app.access.policy.errors import Malformed
from sluice_s3.app.access.policy.variables import Template, Values
from sluice_s3.app.access.policy.wildcards import Work

ARN_START = "arn:aws:s3:::"


class Resources(NamedTuple):
    """Names `BUCKET` and `BUCKET/KEY` of a statement: these, or all but these."""

    templates: Sequence[Template]
    negated: bool

    def include(self, name: str, values: Values, work: Work, *, allow: bool) -> bool:
        """Return whether the statement applies to a bucket or an object. Raises TooCostly.

        A template without meaning for a request matches nothing; in `NotResource` of an Allow statement it matches
        everything.
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
    """Parse the resources of a statement in a policy of `bucket`.

    Each of `actions` must fit one of them. Raises Malformed, also for a resource outside the bucket.
    """
    found, negated = find_either(statement, "Resource")
    templates = []
    on_bucket = on_objects = negated
    for text in texts(found, errors.RESOURCE):
        if not text.startswith(ARN_START):
            raise Malformed(errors.RESOURCE)
        template = Template(text.removeprefix(ARN_START), variables=variables)
        of_bucket, of_objects = template.may_be(bucket), template.may_begin(bucket + "/")
        if not of_bucket and not of_objects:
            raise Malformed(errors.RESOURCE)
        on_bucket |= of_bucket
        on_objects |= of_objects
        templates.append(template)
    for some in actions:
        if not (on_bucket and some & BUCKET_ACTIONS) and not (on_objects and some & OBJECT_ACTIONS):
            raise Malformed(errors.MISMATCH)
    return Resources(templates, negated)
