"""Prices in, dollars out: worked out by hand, and clear words for what cannot be a price."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluice_s3.app.cli.bench import bench
from sluice_s3.loadtests.compare.plan import PlanError
from sluice_s3.loadtests.report.cost.bill import MONTH_SECONDS, Bill, bill_of, crossings
from sluice_s3.loadtests.report.cost.examples import EXAMPLES, SOURCES
from sluice_s3.loadtests.report.cost.load import Load, load_of
from sluice_s3.loadtests.report.cost.prices import Price, parse_costs
from sluice_s3.loadtests.report.model import of_run
from tests.tools.loadtests.report.making import Made, steady

MIX = Load("mixed", {"GET": 0.5, "PUT": 0.25, "STAT": 0.25}, 1e6, 5e5, {"a": 10.0})


def test_what_a_user_writes_is_a_price() -> None:
    found = parse_costs(["a=gp3,stored=500,iops-provisioned=6000", "b=gb=0.1,put=0.005", "c=efs"], EXAMPLES)
    assert found["a"] == EXAMPLES["gp3"].model_copy(
        update={"stored": 500.0, "iops_provisioned": 6000.0, "example": "gp3"}
    )
    assert (found["b"].gb, found["b"].put, found["b"].stored, found["b"].example) == (0.1, 0.005, 1000.0, "")
    assert found["c"].read == 0.03


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a", "is not NAME=EXAMPLE"),
        ("=gp3", "is not NAME=EXAMPLE"),
        ("a=", "is not NAME=EXAMPLE"),
        ("a=gp9", "'gp9' is neither an example nor PRICE=DOLLARS (examples: gp3, efs, s3; prices: gb, stored"),
        ("a=gb=0.1,gp3", "'gp3' is neither"),
        ("a=gib=1", "there is no price 'gib'"),
        ("a=example=gp3", "there is no price 'example'"),
        ("a=gb=cheap", "gb: Input should be a valid number"),
        ("a=iops-provisioned=-1", "iops-provisioned: Input should be greater than or equal to 0"),
        ("a=gb=nan", "gb: Input should be"),
        ("a=gb=inf", "gb: Input should be"),
    ],
)
def test_what_is_no_price_is_said(text: str, said: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_costs([text], EXAMPLES)
    assert said in str(caught.value)
    with pytest.raises(PlanError, match="names a twice"):
        parse_costs(["a=gp3", "a=efs"], EXAMPLES)


def test_a_bill_by_hand() -> None:
    price = Price(
        gb=0.1, stored=100, month=7, iops=0.01, iops_provisioned=150, iops_included=100, mbps=0.5, mbps_provisioned=1,
        mbps_included=5, put=0.004, get=0.002, read=0.03, write=0.06,
    )  # fmt: skip
    bill = bill_of("a", price, MIX)
    assert bill.fixed == pytest.approx(0.1 * 100 + 7 + 0.01 * 50)
    request = (0.25 * 0.004 + 0.75 * 0.002) / 1000 + 0.03 * 1e6 / 1e9 + 0.06 * 5e5 / 1e9
    assert bill.total(10) == pytest.approx(bill.fixed + 10 * request * MONTH_SECONDS)
    assert bill.per_dollar == pytest.approx(10 * 1.5 / bill.total(10))
    assert bill_of("a", Price(), MIX).per_dollar == 0


def test_where_lines_cross() -> None:
    cheap, flat, dear = Bill("s3", 10, 5, 8, 1), Bill("gp3", 60, 0, 20, 1), Bill("efs", 100, 6, 20, 1)
    (found,) = crossings([cheap, flat, dear])
    assert (found.below, found.above, found.rate, found.dollars) == ("s3", "gp3", 10, 60)
    assert crossings([flat, cheap]) == [found]
    assert crossings([flat, flat]) == []


def test_examples_have_their_sources() -> None:
    assert EXAMPLES.keys() == SOURCES.keys()
    for sources in SOURCES.values():
        assert all(one.link.startswith("https://") and "202" in one.words for one in sources)
    assert bill_of("a", EXAMPLES["gp3"], MIX).fixed == 80, "what gp3 includes costs nothing"


def mixed(directory: Path) -> Path:
    made = Made(directory, ("a", "b"))
    for name, slow in (("a", 0.01), ("b", 0.02)):
        for repeat in (1, 2, 3):
            one = steady([slow] * 30, size=1000) + steady([slow] * 10, "PUT", size=1000)
            made.cell(name, "mixed", repeat, one)
    return made.write()


def test_the_load_of_a_run(tmp_path: Path) -> None:
    load = load_of(of_run(mixed(tmp_path / "r")))
    assert load is not None
    assert load.shares == {"GET": 0.75, "PUT": 0.25}
    assert (load.read, load.written) == (750, 250)
    assert load.rates == {"a": pytest.approx(40 / 0.3), "b": pytest.approx(40 / 0.6)}
    assert load_of(of_run(Made(tmp_path / "none").write())) is None


def test_the_command_keeps_what_it_was_given(tmp_path: Path) -> None:
    """A later report without options has the prices, and one with others has those."""
    run, command = mixed(tmp_path / "r"), CliRunner()
    done = command.invoke(bench, ["report", str(run), "--cost", "a=gp3", "--cost", "b=s3", "--title", "Our disks"])
    assert done.exit_code == 0, done.output
    text = (run / "report.md").read_text()
    assert text.startswith("# Our disks: a vs b\n")
    assert "b is cheaper than a below" in text
    assert "saisci.com" in text
    assert "cloudburn.io" in text
    done = command.invoke(bench, ["report", str(run), "--note", "after the move"])
    money = json.loads((run / "report.json").read_text())["money"]
    assert money["prices"]["a"]["example"] == "gp3"
    (crossing,) = money["crossings"]
    assert crossing["below"] == "b"
    assert crossing["rate"] == pytest.approx(57 / (MONTH_SECONDS * (0.25 * 0.005 + 0.75 * 0.0004) / 1000))
    text = (run / "report.md").read_text()
    assert "\n\nafter the move\n\n" in text
    assert text.startswith("# Our disks: a vs b\n")
    wrong = command.invoke(bench, ["report", str(run), "--cost", "c=gp3"])
    assert (wrong.exit_code, "there is no store c in this run (there are a, b)" in wrong.output) == (2, True)
    wrong = command.invoke(bench, ["--store", "local", "--cost", "c=gp3", "--results", str(tmp_path)])
    assert (wrong.exit_code, "there is no store c in this run (there are local)" in wrong.output) == (2, True)
    wrong = command.invoke(bench, ["report", str(run), "--title", "x" * 300])
    assert (wrong.exit_code, "--title: String should have at most 200" in wrong.output) == (2, True)


def test_without_prices_there_is_no_money(tmp_path: Path) -> None:
    run = mixed(tmp_path / "r")
    assert CliRunner().invoke(bench, ["report", str(run)]).exit_code == 0
    assert json.loads((run / "report.json").read_text())["money"] is None
    assert "$" not in (run / "report.md").read_text()
