"""The mix of `mixed` by boto3: an application's view, with its client's own time.

locust -f loadtests/scenarios/boto3_mixed.py --host http://127.0.0.1:9000 -u 8 --size 64KiB
"""

from locust.env import Environment

from sluice_s3.loadtests.clients.boto import BotoObjects
from sluice_s3.loadtests.mixed_user import MixUser


class Boto3Mixed(MixUser):
    """A user that behaves like an application's thread."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        options = self.session.options
        if options.direct:
            raise ValueError("boto3 needs an endpoint: no --direct here")
        self.objects = BotoObjects(self.session.endpoint(), options.bucket)
