"""Metrics of a record by hand-computed values, and the tables that show them."""

from __future__ import annotations

import pytest

from bench.canned_cells import make_record
from wedgewise_bench.metrics import amount_text, metric_sections, metrics_of, published_statistics
from wedgewise_bench.record import Record
from wedgewise_bench.statistic import Statistic


def on_gpu() -> Record:
    kernels = (0.009, *[0.001] * 5, *[0.003] * 5)  # eleven repeats, the first of which is cold
    return make_record(
        "wedgewise",
        kernels,
        algorithm="trust",
        device="cuda",
        edges=600_000,
        peak_bytes=5_000,
        stages={"kernel": kernels, "prepare": (0.25,) * 11},
        facts={
            "wedges_tested": 9_000_000,
            "bytes_moved": 1_234_567,
            "device_peak_bytes": 7_000_000_000,
            "limit_seconds": 0.0005,
        },
    )


def test_rates_and_bytes_of_a_cell_on_a_gpu() -> None:
    metrics = metrics_of(on_gpu())
    assert (metrics.median, metrics.repeats) == (0.003, 11)
    assert metrics.spread == pytest.approx((0.009 - 0.001) / 0.003)
    assert metrics.stages == {"prepare": 0.25, "kernel": 0.003}
    assert metrics.edges_per_second == metrics.teps == pytest.approx(2e8)
    assert metrics.checks == 9_000_000
    assert metrics.checks_per_second == pytest.approx(3e9)
    assert (metrics.bytes_moved, metrics.peak_bytes, metrics.device_peak_bytes) == (1_234_567, 5_000, 7_000_000_000)
    assert metrics.times_limit == pytest.approx(6.0)


def test_each_paper_has_its_own_statistic() -> None:
    published = metrics_of(on_gpu()).published
    assert published["trust"] == published["wetric"] == published["eager"] == pytest.approx(0.002)  # (5 + 15) / 10 ms
    assert published["bbtc"] == 0.003
    assert set(published) == set(published_statistics()) == {"wetric", "trust", "bbtc", "eager"}


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (Statistic("mean"), 4.0),
        (Statistic("mean", 2), 1.5),
        (Statistic("mean", 10), 4.0),
        (Statistic("median"), 2.0),
        (Statistic("median", 2), 1.5),
        (Statistic("least"), 1.0),
    ],
)
def test_statistics_are_of_the_last_repeats(statistic: Statistic, expected: float) -> None:
    assert statistic.of([9.0, 1.0, 2.0]) == expected
    assert statistic.of([]) is None


def test_from_pairs_to_the_answer_rates_differ() -> None:
    stages = {"prepare": (0.5,), "kernel": (0.25,), "whole": (1.0,)}
    metrics = metrics_of(make_record("wedgewise", (1.0,), row="edges", edges=100, stages=stages))
    assert (metrics.edges_per_second, metrics.teps) == (100.0, 400.0)


def test_a_row_with_more_than_the_kernels_says_nothing_of_them() -> None:
    metrics = metrics_of(make_record("igraph", (1.0,), row="file", edges=100))
    assert (metrics.edges_per_second, metrics.teps, metrics.published) == (100.0, None, {})


def test_what_is_not_known_is_none() -> None:
    metrics = metrics_of(make_record("igraph", (2.0,)))
    unknown = ("edges_per_second", "teps", "checks", "checks_per_second", "bytes_moved", "device_peak_bytes")
    assert [getattr(metrics, name) for name in (*unknown, "times_limit")] == [None] * 7
    assert metrics_of(make_record("igraph", status="timeout")).median is None
    assert metrics_of(make_record("igraph", (2.0,)), edges=100).teps == 50.0


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "", "–"),
        (0, "B", "0 B"),
        (999, "", "999"),
        (999.7, "", "1.00 k"),
        (1234, "B", "1.23 kB"),
        (45_600_000, "B", "45.6 MB"),
        (7e9, "", "7.00 G"),
        (2.5e18, "", "2500 P"),
    ],
)
def test_amounts_have_three_digits(value: float | None, unit: str, text: str) -> None:
    assert amount_text(value, unit) == text


def test_tables_show_them_and_take_edges_from_others() -> None:
    wrong = make_record("rustworkx", (1.0,), status="wrong")
    seconds, rates = metric_sections([on_gpu(), make_record("igraph", (0.006,)), wrong])
    cells = [cell.strip() for cell in seconds.splitlines()[4].split("|")[1:-1]]
    assert cells[:7] == ["g", "count", "wedgewise on cuda/trust", "2", "3.00 ms", "267%", "11"]
    assert cells[7:] == ["3.00 ms", "2.00 ms", "250 ms", "3.00 ms"]
    assert "| median of the last 5 (bbtc) | mean of the last 10 (eager, trust, wetric) |" in seconds
    cells = [cell.strip() for cell in rates.splitlines()[4].split("|")[1:-1]]
    assert cells[4:] == ["200 M", "200 M", "9.00 M", "3.00 G", "1.23 MB", "5.00 kB", "7.00 GB", "6.00×"]
    cells = [cell.strip() for cell in rates.splitlines()[5].split("|")[1:-1]]
    assert cells[2:] == ["igraph/default", "2", "100 M", "100 M", *["–"] * 6]
    assert "rustworkx" not in seconds + rates
    assert metric_sections([wrong]) == []
