"""warp's mix (as published with `zdbfs`): GET 45 %, STAT 30 %, PUT 15 %, DELETE 10 % of 10 MiB objects by 20 users.

locust -f loadtests/scenarios/mixed.py --host http://127.0.0.1:9000 -u 20 -r 20 --objects 200
"""

from sluice_s3.loadtests.mixed_user import MixUser


class Mixed(MixUser):
    """A client that does one operation after another."""
