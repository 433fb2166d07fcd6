"""The page in a real browser: no console error, tables that sort, nothing wider than a phone, light and dark."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import escape, unescape
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.report_records import every_kind
from wedgewise_bench.report.page import bench_report, to_html

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60
PHONE = (320, 800)
MIN_LETTER = 8.5  # pixels
DESKTOP = (1100, 1400)
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
)
STORED = sorted((Path(__file__).resolve().parents[2] / "benchmarks" / "results").glob("*.html"))
DARK = "--blink-settings=preferredColorScheme=0"

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium, which is not installed here")

EXAMINE = """
const told = {};
const tables = [...document.querySelectorAll("table")];
const table = tables.find((found) => found.tHead.textContent.includes("fastest peer"));
const column = (number) => [...table.tBodies[0].rows].map((row) => row.cells[number].textContent);
const heads = [...table.tHead.rows[0].cells];
const press = (number) => heads[number].querySelector("button").click();
const states = () => heads.map((head) => head.getAttribute("aria-sort"));
told.before = column(0);
press(0); told.byName = column(0); told.afterName = states();
press(2); told.byRatio = column(2); told.afterRatio = states();
press(2); told.byRatioDown = column(2); told.afterRatioDown = states();
const unanswered = tables.find((found) => [...found.querySelectorAll("[data-key='']")].length > 0);
const place = [...unanswered.querySelector("[data-key='']").parentNode.cells].findIndex((c) => c.dataset.key === "");
told.last = [1, 2].map(() => {
  unanswered.tHead.rows[0].cells[place].querySelector("button").click();
  return [...unanswered.tBodies[0].rows].at(-1).cells[place].dataset.key;
});
heads[1].querySelector("button").focus();
told.focused = document.activeElement.textContent;
told.wide = [...document.querySelectorAll("body *")].filter((found) =>
  !found.closest(".box, svg") && found.getBoundingClientRect().right > innerWidth + 1).map((found) => found.tagName);
told.page = [document.documentElement.scrollWidth, innerWidth];
told.boxes = [...document.querySelectorAll(".box")].some((box) => box.scrollWidth > box.clientWidth);
told.drawings = [...document.querySelectorAll("svg")].map((svg) => svg.getBoundingClientRect().width);
told.letters = [...document.querySelectorAll("svg")].flatMap((svg) => [...svg.querySelectorAll("text")].map((text) =>
  parseFloat(getComputedStyle(text).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width));
told.cut = [...document.querySelectorAll("svg")].flatMap((svg) => [...svg.querySelectorAll("text")].filter((text) =>
  text.getBoundingClientRect().right > svg.getBoundingClientRect().right + 1).map((text) => text.textContent));
const identifiers = [...document.querySelectorAll("[id]")].map((found) => found.id);
told.twice = identifiers.filter((id, number) => identifiers.indexOf(id) !== number);
const made = document.createElement("pre");
made.id = "told";
made.textContent = JSON.stringify(told);
parent.document.body.append(made);
"""

PRESS_ALL = """
const buttons = [...document.querySelectorAll("thead button")];
buttons.forEach((button) => button.click());
const told = {
  pressed: buttons.length,
  tables: document.querySelectorAll("table").length,
  drawings: document.querySelectorAll("svg").length,
  page: [document.documentElement.scrollWidth, window.innerWidth],
};
const pre = window.parent.document.createElement("pre");
pre.id = "told";
pre.textContent = JSON.stringify(told);
window.parent.document.body.append(pre);
"""

SHOWN = ("What was measured", "Times side by side", "Stages", "Timelines", "What went wrong", "Every cell")
"""Parts of the page that are opened: those without drawings, and two of different kinds, for these take long."""


@pytest.fixture(scope="module")
def page() -> str:
    pytest.importorskip("matplotlib")
    report = bench_report(every_kind())
    return to_html(replace(report, parts=tuple(part for part in report.parts if part.title in SHOWN)))


def browse(path: Path, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Open a page in a browser with a profile of its own."""
    assert BROWSER is not None
    profile = f"--user-data-dir={path.parent / 'profile'}"
    size = f"--window-size={DESKTOP[0]},{DESKTOP[1]}"
    command = [BROWSER, *OPTIONS, profile, size, *options, path.as_uri()]
    return subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True)


def with_script(page: str, script: str) -> str:
    """The page with one more script, which its policy is told of."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = page.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    return page.replace("</body>", f"<script>{script}</script></body>")


def on_a_phone(page: str) -> str:
    """The page in a frame: no window of the browser is as narrow."""
    width, height = PHONE
    frame = f'<iframe width="{width}" height="{height}" style="border: 0" srcdoc="{escape(page)}"></iframe>'
    return f"<!doctype html><meta charset='utf-8'><body>{frame}</body>"


def test_tables_sort_and_nothing_but_their_boxes_is_wider_than_a_phone(page: str, tmp_path: Path) -> None:
    path = tmp_path / "examined.html"
    path.write_text(on_a_phone(with_script(page, EXAMINE)), encoding="utf-8")
    seen = browse(path, "--dump-dom", "--enable-logging=stderr")
    found = re.search(r'<pre id="told">(.*?)</pre>', seen.stdout.decode(), re.DOTALL)
    assert found is not None
    told: dict[str, Any] = json.loads(unescape(found[1]))
    assert told["before"] == ["small", "middle", "large", "huge"]
    assert told["byName"] == ["huge", "large", "middle", "small"]
    assert told["afterName"][:3] == ["ascending", "none", "none"]
    ratios = [float(text.rstrip("×")) for text in told["byRatio"]]
    assert ratios == sorted(ratios)
    assert told["afterRatio"][:3] == ["none", "none", "ascending"]
    assert told["byRatioDown"] == told["byRatio"][::-1]
    assert told["afterRatioDown"][:3] == ["none", "none", "descending"]
    assert told["last"] == ["", ""]
    assert told["focused"] == "edges"
    assert told["wide"] == []
    assert told["page"][0] <= told["page"][1] == PHONE[0]
    assert told["boxes"]
    assert 280 < min(told["drawings"]) <= max(told["drawings"]) <= PHONE[0]
    assert min(told["letters"]) > MIN_LETTER
    assert told["cut"] == []
    assert told["twice"] == []
    assert b"CONSOLE" not in seen.stderr


@pytest.mark.parametrize(("name", "options"), [("light", ()), ("dark", (DARK,))])
def test_a_screenshot_shows_the_page_without_a_console_error(
    page: str, tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    from matplotlib import image

    path, picture = tmp_path / "page.html", tmp_path / f"{name}.png"
    path.write_text(page, encoding="utf-8")
    seen = browse(path, f"--screenshot={picture}", "--enable-logging=stderr", *options)
    assert b"CONSOLE" not in seen.stderr
    pixels = image.imread(BytesIO(picture.read_bytes()))[:, :, :3]
    assert pixels.shape[:2] == DESKTOP[::-1]
    background = pixels[2, 2].mean()
    assert background < 0.2 if name == "dark" else background > 0.9
    is_ink = np.abs(pixels.mean(axis=2) - background) > 0.4
    assert 0.005 < is_ink.mean() < 0.3


@pytest.mark.deep
@pytest.mark.parametrize("stored", STORED, ids=[path.stem for path in STORED])
def test_the_stored_reports_open_on_a_phone(stored: Path, tmp_path: Path) -> None:
    """Every heading of every table is pressed."""
    path = tmp_path / stored.name
    path.write_text(on_a_phone(with_script(stored.read_text(encoding="utf-8"), PRESS_ALL)), encoding="utf-8")
    seen = browse(path, "--dump-dom", "--enable-logging=stderr")
    found = re.search(r'<pre id="told">(.*?)</pre>', seen.stdout.decode(), re.DOTALL)
    assert found is not None
    told: dict[str, Any] = json.loads(unescape(found[1]))
    assert told["pressed"] > told["tables"] > 5
    assert told["drawings"] > 0
    assert told["page"][0] <= told["page"][1] == PHONE[0]
    assert b"CONSOLE" not in seen.stderr


def test_there_are_stored_reports() -> None:
    assert {path.stem for path in STORED} >= {"itc", "wetric", "trust", "bbtc"}


@pytest.mark.deep
def test_the_test_would_notice_a_console_error(page: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.html"
    path.write_text(
        page.replace("</body>", '<script src="https://example.org/x.js"></script></body>'), encoding="utf-8"
    )
    assert b"CONSOLE" in browse(path, "--dump-dom", "--enable-logging=stderr").stderr
