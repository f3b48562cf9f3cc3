"""Write and read objects of several sizes, one client, one after another (as published for EBS, EFS and S3).

locust -f loadtests/scenarios/sizes.py --host http://127.0.0.1:9000 -u 1 --sizes 100KB,1MB,10MB --times 10
"""

from sluice_s3.loadtests.options import Option, Options
from sluice_s3.loadtests.payload import parse_sizes
from sluice_s3.loadtests.users import ScriptUser

OPTIONS = Options(
    Option("sizes", "100KB,1MB,10MB,100MB", "With commas between them."),
    Option("times", 10, "How often each is written, and read."),
    Option("most", "100GB", "Bytes of one size at most; twice at least."),
)


class Sizes(ScriptUser):
    """Runs all writes of a size, then all its reads."""

    def script(self) -> None:
        """See `ScriptUser`."""
        options = OPTIONS.of(self.session.options)
        (most,) = parse_sizes(options.most)
        for size in parse_sizes(options.sizes):
            times = max(2, min(options.times, most // max(1, size)))
            keys = self.own_share([f"sizes/{size}-{number}" for number in range(times)])
            for operation in ("PUT", "GET"):
                for key in keys:
                    self.do(operation, key, size, users=self.session.share[1])
            for key in keys:
                self.objects.delete(key)
