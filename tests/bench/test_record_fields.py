"""Results files that somebody damaged: a page is written, or one error names the file, the line and the field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bench.canned_cells import make_record
from bench.record_mutants import mutants
from wedgewise.errors import FormatError, MissingFileError, WedgewiseError
from wedgewise.run import _dask_workers
from wedgewise_bench import published, record_fields
from wedgewise_bench.compare import compare
from wedgewise_bench.graphs import real_graphs
from wedgewise_bench.programs import read_programs
from wedgewise_bench.record import read_records
from wedgewise_bench.report.page import bench_report, to_html, to_markdown
from wedgewise_bench.suite_files import read_suite
from wedgewise_bench.table import answer_sections, heading

GONE = object()
WRONG: tuple[tuple[str, Any, str], ...] = (
    ("schema", True, "schema true instead of 1"),
    ("date", "yesterday", "date is \"yesterday\", which is no date and time in UTC"),
    ("date", GONE, "date is missing"),
    ("extra", 1, "extra is no field that a record has"),
    ("x" * 500, 1, "xxxx…"),
    ("cell", [], "cell is a list, which is no object"),
    ("cell.threads", -1, "cell.threads is -1, which is no integer from 0 to 2^100"),
    ("cell.threads", True, "cell.threads is true"),
    ("cell.threads", 10**4000, "cell.threads is a larger integer"),
    ("cell.row", "rows", "cell.row is \"rows\", which is none of count, edges, file"),
    ("cell.question", "why", "no question named 'why'"),
    ("cell.question", f"k_truss[k={'9' * 5000}]", "cell.question"),
    ("cell.knobs", {"x]": 1}, "a name in cell.knobs"),
    ("cell.knobs", {"x": [1]}, "cell.knobs.x is a list"),
    ("status", {}, "status is an object"),
    ("status", "fine", "none of ok, wrong"),
    ("message", "\ud800", "message is \"\\\\ud800\", which is no text"),
    ("message", "x" * 10**6, "no text of at most 65,536 letters"),
    ("answer", None, "answer or seconds.all is missing"),
    ("answer", 1.5, "answer is 1.5"),
    ("seconds.all", ["x"], "seconds.all[0] is \"x\", which is no number from 7.88861e-31 to 2^100"),
    ("seconds.all", [0], "seconds.all[0] is 0, which is no number from 7.88861e-31 to 2^100"),
    ("seconds.all", [float("nan")], "seconds.all[0] is NaN"),
    ("seconds.all", [5e-324], "seconds.all[0] is 5e-324"),
    ("seconds.all", [], "answer or seconds.all is missing"),
    ("load", float("inf"), "load is Infinity"),
    ("machine", {}, "machine.processor is missing"),
    ("versions", {"x": 1}, "versions.x is 1"),
    ("stages", {"sleep": [1.0]}, "stages.sleep is no field"),
    ("facts", {"chosen": 7}, "facts.chosen is 7"),
    ("facts", {"counters": {"a": "b"}}, "facts.counters.a is \"b\""),
    ("facts", {"timeline": {}}, "facts.timeline.seconds is missing"),
    ("facts", {"cutting_seconds": 1.0}, "facts.parts is missing"),
    ("facts", {"mine": {"x": 1}}, "facts.mine is an object"),
)  # fmt: skip


def changed(field: str, value: Any) -> str:
    """A line with another value in a field."""
    line = json.loads(make_record("wedgewise", (1.0,)).to_line())
    *way, last = field.split(".")
    holder = line
    for step in way:
        holder = holder[step]
    holder[last] = value
    if value is GONE:
        del holder[last]
    return json.dumps(line)


@pytest.mark.parametrize(("field", "value", "said"), WRONG)
def test_a_wrong_field_is_named(tmp_path: Path, field: str, value: Any, said: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(make_record("wedgewise", (1.0,)).to_line() + "\n" + changed(field, value) + "\n")
    with pytest.raises(FormatError, match=re.escape(said.replace("\\\\", "\\"))) as caught:
        read_records(path)
    assert (caught.value.path, caught.value.line) == (str(path), 2)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "line", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b'{"schema": 1' + b"0" * 5000 + b"}"]
)
def test_what_is_no_json_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(line)
    with pytest.raises(FormatError, match=r"results[.]jsonl:1: not a benchmark record"):
        read_records(path)


@pytest.mark.parametrize(("limit", "value"), [("MAX_LINE_BYTES", 100), ("MAX_VALUES", 10)])
def test_a_line_is_not_read_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(make_record("wedgewise", (1.0,)).to_line() + "\n")
    monkeypatch.setattr(record_fields, limit, value)
    with pytest.raises(FormatError, match="longer than a record can be"):
        read_records(path)


def page_or_refusal(path: Path, drawn: bool) -> bool:
    """Whether everything that is made of records was made; refused by a `WedgewiseError` if not."""
    try:
        records = read_records(path)
        made = bench_report(records)
        texts = [to_markdown(made), heading("x", records), *answer_sections(records), str(compare(records, records))]
        if drawn:
            texts.append(to_html(made))
    except WedgewiseError:
        return False
    assert "".join(texts).encode()
    return True


def test_three_hundred_damaged_files(tmp_path: Path) -> None:
    path, written = tmp_path / "results.jsonl", 0
    for number, content in enumerate(mutants(1, 300)):
        path.write_bytes(content)
        written += page_or_refusal(path, drawn=number % 50 == 0)
    assert 20 < written < 280


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(2, 8))
def test_thousands_of_damaged_files(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "results.jsonl"
    for number, content in enumerate(mutants(seed, 1000)):
        path.write_bytes(content)
        page_or_refusal(path, drawn=number % 20 == 0)


def test_results_without_a_right_answer_have_a_page() -> None:
    made = bench_report([make_record("wedgewise", status="crashed", message="it fell")])
    assert "it fell" in to_markdown(made)
    assert "Every cell" not in to_html(made)


def test_a_truss_of_several_k_is_one_column() -> None:
    ways = {"eager": 3, "wedgewise": 4}
    records = [
        make_record("wedgewise", (1.0,), question="k_truss[k=kmax]", algorithm=way, details={"k": k}, edges=9)
        for way, k in ways.items()
    ]
    assert "3, 4" in "\n".join(answer_sections(records))


@pytest.mark.parametrize("content", ["a = " + "[" * 100_000, "a = " + "9" * 5000])
def test_tables_that_are_too_deep_or_too_long(tmp_path: Path, content: str) -> None:
    path = tmp_path / "some.toml"
    path.write_text(content)
    for read in (read_suite, read_programs, lambda path: published.parse(path.read_text(), str(path))):
        with pytest.raises(FormatError, match="TOML"):
            read(path)


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, "[]", '{"a": 1}', '{"a": {}}', '{"a": {"m": "x", "triangles": 1}}', '{"a": {"m": 1}}', "\xff"],
)
def test_known_counts_that_are_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "truths.json").write_text(content, encoding="latin-1")
    with pytest.raises(FormatError, match=r"truths[.]json: "):
        real_graphs(tmp_path)
    (tmp_path / "truths.json").write_text('{"a": {"m": 1, "triangles": 0, "n": 2, "truss_edges_by_k": {"2": 1}}}')
    with pytest.raises(MissingFileError, match="has no graphs"):
        real_graphs(tmp_path)


def test_a_scheduler_file_of_brackets(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.json"
    path.write_text("[" * 100_000)
    with pytest.raises(FormatError, match="has no address of a scheduler"):
        _dask_workers._address_in(str(path))
