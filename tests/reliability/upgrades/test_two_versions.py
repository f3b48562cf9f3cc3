"""Two versions serve together on one Postgres while the gateways of the earlier one are replaced.

`SLUICE_TEST_OLDER="DIR …"` names checkouts of earlier versions: `make upgrades OLDER="DIR …"`.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sluice_s3.app.index.schema.tables import REVISION
from tests.reliability.crash.ledger import Ledger
from tests.reliability.crash.workload import Clients
from tests.reliability.upgrades.contents import check, write
from tests.reliability.upgrades.older import CHECKOUTS, older, refusal_of, revision_of
from tests.support.gateway import Gateway, client
from tests.support.postgres import running

BUCKETS = ("of-the-earlier", "of-this-one")
REVISIONS = "SELECT version_num FROM alembic_version"
SECONDS = 5


@pytest.mark.parametrize("checkout", CHECKOUTS, ids=lambda path: path.name)
def test_they_serve_together_while_one_is_replaced(checkout: Path, tmp_path: Path) -> None:
    with running() as postgres:
        url = postgres.empty()
        database = urlsplit(url).path.lstrip("/")
        data = tmp_path / "data"

        def env(number: int) -> dict[str, str]:
            return {"SLUICE_INDEX": url, "SLUICE_RUNTIME_DIR": str(tmp_path / f"run{number}")}

        ledgers = [Ledger(bucket) for bucket in BUCKETS]
        with older(checkout, tmp_path / "packages", data, env(0)) as before:
            first = client(before.endpoint)
            write(first, revision_of(checkout))
            for bucket in BUCKETS:
                first.create_bucket(Bucket=bucket)
            assert postgres.sql(REVISIONS, database) == revision_of(checkout)
            with Clients(ledgers[0], before.endpoint, threads=2, seed=1) as clients:
                clients.wait(SECONDS)
                with Gateway(data, env=env(1)) as after:  # it upgrades the tables under the load of the other
                    assert postgres.sql(REVISIONS, database) == REVISION
                    with Clients(ledgers[1], after.endpoint, threads=2, seed=2) as others:
                        others.wait(SECONDS)
                    for s3 in (first, client(after.endpoint)):
                        check(s3, revision_of(checkout))
        assert clients.faults == others.faults == []
        assert [ledger.unknown for ledger in ledgers] == [set(), set()]  # neither failed a request
        if revision_of(checkout) != REVISION:
            with pytest.raises(RuntimeError):  # there is no way back
                older(checkout, tmp_path / "packages", data, env(0)).start()
            assert refusal_of(checkout) in "".join(data.with_name("data.log").read_text().splitlines()[-2:])
        with Gateway(data, env=env(0)) as replaced:
            s3 = client(replaced.endpoint)
            check(s3, revision_of(checkout))
            assert [ledger.check(s3).wrong for ledger in ledgers] == [[], []]
        assert replaced.run("fsck", check=False).returncode == 0
