"""Several gateways that start at once on an empty database and an empty directory."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.gateway import Gateway, client
from tests.support.postgres import server

GATEWAYS = 4


def test_all_of_them_come_up_with_the_same_keys_and_buckets(tmp_path: Path) -> None:
    url = server().empty()
    shared = tmp_path / "shared"
    init_file = tmp_path / "init.toml"
    init_file.write_text('users.alice.groups = ["readers"]\n[groups.readers]\n[buckets.third]\ntags.team = "web"\n')
    gateways = [
        Gateway(
            tmp_path / f"gateway-{number}",
            workers=1,
            given=("--data", str(shared)),
            options=("--admin-port", "0"),
            env={
                "SLUICE_INDEX": url,
                "SLUICE_RUNTIME_DIR": str(tmp_path / f"run-{number}"),
                "SLUICE_DEFAULT_BUCKETS": "first,second",
                "SLUICE_INIT_FILE": str(init_file),
                "SLUICE_ROOT_ACCESS_KEY": "",
                "SLUICE_ROOT_SECRET_KEY": "",
            },
        )
        for number in range(GATEWAYS)
    ]
    try:
        with ThreadPoolExecutor(GATEWAYS) as pool:
            list(pool.map(Gateway.start, gateways))  # raises what one of them said
        keys = json.loads((shared / "credentials").read_text())
        for number, gateway in enumerate(gateways):
            s3 = client(gateway.endpoint, keys["access_key"], keys["secret_key"])
            assert [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]] == ["first", "second", "third"]
            assert s3.get_bucket_tagging(Bucket="third")["TagSet"] == [{"Key": "team", "Value": "web"}]
            s3.put_object(Bucket="first", Key=f"k{number}", Body=b"x")
        listed = client(gateways[0].endpoint, keys["access_key"], keys["secret_key"]).list_objects_v2(Bucket="first")
        assert listed["KeyCount"] == GATEWAYS
    finally:
        for gateway in gateways:
            gateway.__exit__()
