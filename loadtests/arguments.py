"""The options that every scenario takes: on the command line, in the environment, or in the web page's form."""

from __future__ import annotations

from typing import Any

from locust import events

from sluice_s3.loadtests.clients.endpoint import ADDRESSING


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _declare(parser: Any) -> None:
    add = parser.add_argument
    add("--access-key", env_var="AWS_ACCESS_KEY_ID", default="", include_in_web_ui=False)
    add("--secret-key", env_var="AWS_SECRET_ACCESS_KEY", default="", include_in_web_ui=False)
    add("--session-token", env_var="AWS_SESSION_TOKEN", default="", include_in_web_ui=False, help="Of temporary keys.")
    add("--aws-profile", default="", help="Keys of this profile. Without keys and profile: those botocore finds.")
    add("--region", env_var="AWS_REGION", default="us-east-1")
    add("--bucket", env_var="SLUICE_BENCH_BUCKET", default="sluice-bench", help="Made if it is not there.")
    add(
        "--prefix",
        default="",
        help="Work in a bucket that is there, below this prefix, and remove only what the test made.",
    )
    add("--addressing", default="auto", choices=ADDRESSING, help="Buckets in paths or host names; auto: as AWS has it.")
    add("--direct", env_var="SLUICE_BENCH_DIRECT", default="", help="Plain files in this directory instead of S3.")
    add("--unsynced", action="store_true", help="Direct: a write is done when the file is closed.")
    add(
        "--duration",
        type=float,
        default=0.0,
        help="Seconds to measure, after preparation and warm-up; 0: until it is stopped.",
    )
    add("--warm-up", type=float, default=0.0, help="Seconds before them that are not recorded.")
    add("--patience", type=float, default=60.0, help="Seconds without progress after which a request failed.")
    add("--dead-after", type=float, default=10.0, help="Give up when nothing was answered for so many seconds.")
    add("--keep", action="store_true", help="Leave the bucket with its objects; else it is removed at the end.")
    for name, default in (("rows", ""), ("run-name", ""), ("target-name", ""), ("scenario-name", "")):
        add(f"--{name}", default=default, include_in_web_ui=False, help="Directory of rows, and what they say.")
    add("--repeat", type=int, default=1, include_in_web_ui=False)
    add("--epoch", type=float, default=0.0, include_in_web_ui=False)
