"""The documents: their length, links that mkdocs does not check, and the generated tables."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from scripts import errors_table, generated_pages, metrics_table, operations_table

ROOT = Path(__file__).parents[3]
LINK = re.compile(r'(?:\]\(|src="|srcset=")(?!https?:|#)([^)"#\s]+)')
GENERATED = {"cli.md", "operations.md"}


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 200
    links = LINK.findall(text)
    assert len(links) > 20
    assert not [link for link in links if not (ROOT / link).exists()]


def test_pages_are_short() -> None:
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.name not in GENERATED]
    assert len(pages) > 30
    assert not [page.name for page in pages if len(page.read_text().splitlines()) > 250]


def test_a_note_of_no_operation_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = tmp_path / "notes.toml"
    notes.write_text('PutNothing = "it is gone"\n')
    monkeypatch.setattr(operations_table, "NOTES", notes)
    with pytest.raises(ValueError, match="PutNothing"):
        operations_table.table()


def test_an_old_table_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generated_pages, "REFERENCE", tmp_path)
    page = tmp_path / "errors.md"
    page.write_text("# Errors\n<!-- errors: made by x -->\nold\n<!-- end of errors -->\nafter\n")
    table = errors_table.table()
    assert generated_pages.put_table("errors", "errors", "x", table, check=True, remedy="make format") == 1
    assert "make format" in capsys.readouterr().err
    assert generated_pages.put_table("errors", "errors", "x", table, check=False, remedy="") == 0
    assert generated_pages.put_table("errors", "errors", "x", table, check=True, remedy="") == 0
    assert "| `NoSuchKey` | 404 |" in page.read_text()
    assert page.read_text().endswith("after\n")
    page.write_text("# Errors\n")
    assert generated_pages.put_table("errors", "errors", "x", table, check=False, remedy="") == 1


def test_the_messages_of_troubleshooting_are_those_of_the_code() -> None:
    text = "\0".join(
        node.value
        for folder in ("app", "storage_drivers")
        for module in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    text += "\0".join(script.read_text() for script in (ROOT / "app" / "console" / "js").rglob("*.js"))
    messages = re.findall(r"^### `(.*)`$", (ROOT / "docs" / "troubleshooting.md").read_text(), re.M)
    assert len(messages) > 30
    parts = [part.strip() for message in messages for part in message.split("…")]
    assert not [part for part in parts if len(part) > 3 and part not in text]


def test_metrics_are_found_where_modules_declare_them() -> None:
    found = metrics_table.of_module(
        ast.parse(
            "HELP = {'sluice_a': 'One.'}\n"
            "GIVEN = 'sluice_c_total'\n"
            "def f(x):\n"
            "    yield family('sluice_b_total', 'counter', 'Two.', [f'sluice_b_total{{kind=\"{x}\"}} 1'])\n"
            "    yield ('sluice_c_total', 'counter', 'Three.')\n"
            '    yield f\'{GIVEN}{{target="{x}",reason="{x}"}} 1\'\n'
            "    yield f'{x}{{store=\"{x}\"}} 1'\n"
        )
    )
    assert found == {
        "sluice_a": ("gauge", ["store"], "One."),
        "sluice_b_total": ("counter", ["kind"], "Two."),
        "sluice_c_total": ("counter", ["target", "reason"], "Three."),
    }
