"""The database that the tests' own indexes are copies of."""

from __future__ import annotations

from copy import copy
from typing import Any

import pytest

from tests.support import postgres


def test_a_migration_that_fails_once_fails_no_later_test(monkeypatch: pytest.MonkeyPatch) -> None:
    server = copy(postgres.server())
    vars(server).pop("_template", None)
    open_index, calls = postgres.open_index, 0

    def open_later(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise TimeoutError("busy")
        return open_index(*arguments, **options)

    monkeypatch.setattr(postgres, "open_index", open_later)
    with pytest.raises(TimeoutError, match="busy"):
        server.fresh()
    url = server.fresh()
    assert (
        server.sql("SELECT count(*) FROM buckets", url.removeprefix("postgresql://sluice@/").partition("?")[0]) == "0"
    )
    assert server.fresh() != url
    assert calls == 2
