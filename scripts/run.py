"""Start `sluice serve`, and say how to use it once it is ready (called by `make run`)."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

WELCOME = """
Sluice is ready.

  endpoint    {endpoint}
{console}{keys}
A first request, in another terminal:

{first}
Stop it with Ctrl-C.
"""
AWS = """\
{exports}  aws --endpoint-url {endpoint} s3 mb s3://first
  aws --endpoint-url {endpoint} s3 cp README.md s3://first/
  aws --endpoint-url {endpoint} s3 ls s3://first/
"""
CURL = """\
{exports}  s3() {{
    curl --aws-sigv4 aws:amz:{region}:s3 --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" \\
      -H x-amz-content-sha256:UNSIGNED-PAYLOAD "$@"
  }}
  s3 -X PUT {endpoint}/first
  s3 -T README.md {endpoint}/first/
  s3 {endpoint}/first

That needs curl 7.75 or later. With `aws` it is shorter: pip install awscli
"""


def welcome(endpoint: str, console: str, data: Path) -> str:
    """Return how to use the gateway, by the AWS command line if it is installed, else by curl.

    `console` is its address, empty where there is none. The text contains the generated keys, or refers to those of the
    environment, which it does not print.
    """
    region = os.environ.get("SLUICE_REGION", "us-east-1")
    exports = f"  export AWS_DEFAULT_REGION={region}\n"
    if any(os.environ.get(name) for name in ("SLUICE_ROOT_ACCESS_KEY", "MINIO_ROOT_USER")):
        keys = "  keys        those of your environment\n"
    else:
        credentials = json.loads((data / "credentials").read_text())
        keys = "  access key  {access_key}\n  secret key  {secret_key}\n".format(**credentials)
        exports = (
            "  export AWS_ACCESS_KEY_ID={access_key} AWS_SECRET_ACCESS_KEY={secret_key}\n".format(**credentials)
            + exports
        )
    first = (AWS if shutil.which("aws") else CURL).format(exports=exports, endpoint=endpoint, region=region)
    line = f"  console     {console}\n" if console else ""
    return WELCOME.format(endpoint=endpoint, console=line, keys=keys, first=first)


def console_address(admin_port: int) -> str:
    """Return where people sign in; empty where the settings leave no console."""
    if admin_port <= 0 or os.environ.get("SLUICE_CONSOLE", "").lower() in ("0", "false", "no", "off"):
        return ""
    scheme = "https" if os.environ.get("SLUICE_TLS_CERT") else "http"
    return os.environ.get("SLUICE_CONSOLE_URL") or f"{scheme}://localhost:{admin_port}"


def wait_ready(port: int, gateway: subprocess.Popen[bytes]) -> bool:
    """Return True once the gateway answers, False if it ended."""
    while gateway.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
            connection.request("GET", "/-/health/ready")
            if connection.getresponse().status == 200:
                return True
        time.sleep(0.1)
    return False


def main() -> int:
    """Run the gateway until it ends; a signal to stop is passed on to it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--port", type=int, default=9000)
    options = parser.parse_args()
    sluice = Path(sys.executable).with_name("sluice")
    command = [str(sluice), "serve", "--host", "127.0.0.1", "--port", str(options.port), "--data", str(options.data)]
    given = os.environ.get("SLUICE_ADMIN_PORT", "")
    admin_port = int(given) if given.isdecimal() else -1
    if not given:  # so that two of them need two ports, not four
        admin_port = options.port + 1 if options.port < 65535 else -1
        command += ["--admin-port", str(admin_port)]
    # its own session: Ctrl-C reaches us alone, and the gateway gets one signal, the one it stops gracefully on
    gateway = subprocess.Popen(command, start_new_session=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: gateway.terminate())
    endpoint = f"http://127.0.0.1:{options.port}"
    if wait_ready(options.port, gateway):
        print(welcome(endpoint, console_address(admin_port), options.data), flush=True)
    code = gateway.wait()
    return 0 if code in (0, -signal.SIGTERM) else code


if __name__ == "__main__":
    sys.exit(main())
