"""Ten files of one size, one after another, five times with pauses (as published for EFS elastic and bursting).

locust -f loadtests/scenarios/batches.py --host http://127.0.0.1:9000 -u 1 --sizes 1KB,1MB,100MB --pause 10
"""

import gevent

from sluice_s3.loadtests.options import Option, Options
from sluice_s3.loadtests.payload import parse_sizes
from sluice_s3.loadtests.users import ScriptUser

OPTIONS = Options(
    Option("sizes", "1KB,1MB,100MB", "With commas between them."),
    Option("files", 10, "Of a batch."),
    Option("batches", 5, "Of a size."),
    Option("pause", 10.0, "Seconds between two batches."),
)


class Batches(ScriptUser):
    """Runs the stages `batch-1`, `batch-2` and so on."""

    def script(self) -> None:
        """See `ScriptUser`."""
        options = OPTIONS.of(self.session.options)
        for size in parse_sizes(options.sizes):
            for batch in range(1, options.batches + 1):
                keys = self.own_share([f"batches/{size}-{batch}-{number}" for number in range(options.files)])
                for key in keys:
                    self.do("PUT", key, size, stage=f"batch-{batch}", users=self.session.share[1])
                gevent.sleep(options.pause)
                for key in keys:
                    self.objects.delete(key)
