"""The page: what it holds, what it may load, and that nothing in it can be taken for markup."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from wedgewise.report.page import Section, escaped, figure_html, list_html, page_html, paragraph_html, table_html

VOID = {"meta", "link", "br", "img", "hr", "input"}
NASTY = "<script>alert('1')</script> & \"quoted\""


class Tree(HTMLParser):
    """Fails on elements that are closed in another order than they were opened; keeps tags and identifiers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.identifiers: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.identifiers += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.identifiers += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_names_are_never_markup() -> None:
    table = table_html([NASTY], [[NASTY], [(NASTY, 1.0)]], NASTY)
    page = page_html(
        NASTY, NASTY, [Section(NASTY, table + figure_html("<svg></svg>", NASTY, NASTY) + list_html([NASTY]))]
    )
    tree = Tree(page)
    assert tree.tags.count("script") == 1
    assert page.count("&lt;script&gt;") >= 9


def test_a_table_is_accessible_and_carries_its_sort_keys() -> None:
    text = table_html(
        ["graph", "time", "note"], [["b", ("2 ms", 0.002), "x"], ["a", ("–", None), "y"]], "Times of `auto`"
    )
    assert "<caption><span>Times of <code>auto</code></span></caption>" in text
    assert text.count('<th scope="col" aria-sort="none"') == 3
    assert text.count('<th scope="row">') == 2
    assert '<td class="number" data-key="0.002">2 ms</td>' in text
    assert '<td class="number" data-key="">–</td>' in text
    assert "<td>x</td>" in text
    assert text.count('<button type="button">') == 3
    assert 'role="region" tabindex="0"' in text


def test_long_texts_of_a_table_are_broken_into_lines() -> None:
    text = table_html(["a", "b"], [["x", "word " * 20]], "c")
    assert '<td class="long">' in text


def test_the_page_forbids_whatever_is_not_in_it() -> None:
    page = page_html("Title", "All of it.", [Section("One", "<p>1</p>")])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    script = re.search(r"<script>(.*)</script>", page, re.DOTALL)
    assert policy is not None
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy[1]
    assert "default-src 'none'" in policy[1]
    assert not re.search(r"https?://", page)
    assert "@import" not in page


def test_sections_are_linked_by_headings_of_their_own() -> None:
    page = page_html("Title", "All of it.", [Section("Same", ""), Section("Same", "")])
    tree = Tree(page)
    assert len(set(tree.identifiers)) == len(tree.identifiers)
    for anchor in re.findall(r'href="#([^"]+)"', page):
        assert anchor in tree.identifiers


def test_drawings_on_one_page_have_identifiers_of_their_own() -> None:
    drawing = '<svg><defs><path id="a"/></defs><g clip-path="url(#a)"><use xlink:href="#a"/></g></svg>'
    page = page_html("Title", "All of it.", [Section("One", drawing), Section("Two", drawing)])
    identifiers = Tree(page).identifiers
    assert len(set(identifiers)) == len(identifiers)
    for name in ("drawing-1-a", "drawing-2-a"):
        assert page.count(f'id="{name}"') == page.count(f"url(#{name})") == page.count(f'href="#{name}"') == 1


def test_the_same_data_give_the_same_page() -> None:
    first, second = (page_html("Title", "All.", [Section("One", paragraph_html("`x`"))]) for _ in range(2))
    assert first == second


def test_light_and_dark_define_the_same_colours() -> None:
    page = page_html("Title", "All.", [])
    light, dark = page.split("prefers-color-scheme: dark", 1)
    names = [set(re.findall(r"(--[\w-]+): #", text)) for text in (light, dark.split("* {")[0])]
    assert names[0] == names[1] != set()


def test_texts_are_escaped_once() -> None:
    assert escaped("a & b") == "a &amp; b"
    assert paragraph_html("a < `b & c`") == "<p>a &lt; <code>b &amp; c</code></p>"


def test_names_with_settings_may_be_broken_between_these() -> None:
    table = table_html(["way", "of"], [["trust[chunk=3,cached=2] on cuda", "1,024"]], "Times of a[b=1].")
    assert "trust[<wbr>chunk=3,<wbr>cached=2] on cuda</th>" in table
    assert ">1,024</td>" in table
    assert "<span>Times of a[<wbr>b=1].</span>" in table
    assert 'aria-label="Times of a[b=1]."' in table
