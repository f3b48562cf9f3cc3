"""The mix of `mixed` by boto3: an application's view, with its client's own time.

locust -f loadtests/scenarios/boto3_mixed.py --host http://127.0.0.1:9000 -u 8 --size 64KiB
"""

from sluice_s3.loadtests.clients.boto import BotoObjects
from sluice_s3.loadtests.clients.s3 import StorageClient
from sluice_s3.loadtests.mixed_user import MixUser


class Boto3Mixed(MixUser):
    """A user that behaves like an application's thread."""

    def connect(self) -> StorageClient:
        """Return a client by boto3, as each thread of an application has one."""
        options = self.session.options
        if options.direct:
            raise ValueError("boto3 needs an endpoint: no --direct here")
        return BotoObjects(self.session.endpoint(), options.bucket, self.session.root or "")
