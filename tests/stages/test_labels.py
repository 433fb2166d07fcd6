"""Text labels: the compact sequence of them, and the table that numbers them, by its kernels and by a dictionary."""

from __future__ import annotations

import copy
import pickle
import random
import sys
import tracemalloc
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from wedgewise.errors import InputError, MissingDependencyError
from wedgewise.machine import jit
from wedgewise.stages import _label_kernel, label_table, labels
from wedgewise.stages.label_table import LabelTable
from wedgewise.stages.labels import TextLabels, compact_labels, pick_labels

HOSTILE = [
    "",
    "\0",
    "\0\0",
    "a",
    "a\0",
    "😀",
    "😀😀",
    "ä",
    "é" * 3,
    "x" * 8,
    "x" * 9,
    "x" * 16,
    "x" * 17,
    "y" + "x" * 16,
    "\n",
    '"',
    "None",
]
LONG = "y" * 10**6

examples = settings(deadline=None, derandomize=True, max_examples=20 if jit.JIT_DISABLED else 60)
texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=60)
both_ways = pytest.mark.parametrize("compiled", [True, False])


def numbered(strings: list[str]) -> tuple[list[int], list[str]]:
    """What a table has to find: the number of each string by first appearance, and the distinct ones."""
    number_of: dict[str, int] = {}
    return [number_of.setdefault(text, len(number_of)) for text in strings], list(number_of)


def spans_of(strings: list[str]) -> Any:
    return TextLabels.of(strings).spans()


# TextLabels


@examples
@given(texts)
def test_labels_are_like_a_list(strings: list[str]) -> None:
    found = TextLabels.of(strings)
    assert len(found) == len(strings)
    assert found.tolist() == list(found) == strings
    assert found == strings
    assert strings == found
    assert found == tuple(strings)
    assert repr(found) == repr(strings)
    assert [found[i] for i in range(-len(strings), len(strings))] == strings + strings
    for text in (*strings, "nobody"):
        assert (text in found) == (text in strings)
        if text in strings:
            assert found.index(text) == strings.index(text)


@examples
@given(texts, st.slices(60), st.data())
def test_parts_of_labels_are_labels(strings: list[str], part: slice, data: st.DataObject) -> None:
    found = TextLabels.of(strings)[part]
    assert isinstance(found, TextLabels)
    assert found == strings[part]
    assert found.nbytes == 8 + sum(8 + len(text.encode()) for text in strings[part])
    numbers = data.draw(st.lists(st.integers(0, len(found) - 1), max_size=20)) if len(found) else []
    taken = found.take(numbers)
    assert taken == [found[number] for number in numbers]
    trailing = np.frombuffer(b"," * len(numbers), np.uint8)
    if len(found.data):
        spelled = found.spell(np.array(numbers, np.int64), trailing)
        assert spelled.decode() == "".join(f"{text}," for text in taken)


def test_equal_labels_are_equal_wherever_they_lie() -> None:
    whole = TextLabels.of(["a", "bc", "d", "bc", "d"])
    assert whole[1:3] == whole[3:]
    assert whole[1:3] != whole[2:4]
    assert whole[1:3] != whole[1:]
    assert TextLabels.of(["ab", "c"]) != TextLabels.of(["a", "bc"])
    assert whole != ["a", "bc", "d", "bc", 5]
    assert whole != "abcdbcd"
    assert TextLabels.of([]) == []


def test_labels_cannot_be_changed() -> None:
    found = TextLabels.of(["ada", "bob"])
    for change in (
        "found.data = found.offsets = None",
        "found[0] = 'eve'",
        "found.data[0] = 0",
        "found.offsets[0] = 1",
        "found.names = []",
        "hash(found)",
    ):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            exec(change, {"found": found})
    data = np.frombuffer(b"ada", np.uint8).copy()
    held = TextLabels(data, np.array([0, 3]))
    assert not held.data.flags.writeable
    assert data.flags.writeable


def test_labels_are_copied_and_pickled_without_what_they_do_not_hold() -> None:
    part = TextLabels.of(["a" * 1000, "ada", "bob"])[1:]
    for again in (copy.copy(part), copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        assert again == ["ada", "bob"]
        assert not again.data.flags.writeable
    assert len(pickle.dumps(part)) < 500


def test_long_labels_are_shown_by_their_ends() -> None:
    many = [str(number) for number in range(1001)]
    assert repr(TextLabels.of(many[:1000])) == repr(many[:1000])
    assert repr(TextLabels.of(many)) == "['0', '1', '2', ..., '998', '999', '1000']"


def test_labels_are_numpy_arrays_as_lists_are() -> None:
    found = TextLabels.of(["ada", "ä"])
    assert np.asarray(found).tolist() == ["ada", "ä"]
    assert np.asarray(found).dtype == np.asarray(["ada", "ä"]).dtype
    assert np.asarray(found, np.object_).tolist() == ["ada", "ä"]
    assert np.asarray(TextLabels.of([])).dtype.kind == "U"


def test_labels_are_found_in_a_range_of_them() -> None:
    found = TextLabels.of(["a", "b", "a", "x" * 20 + "1", "x" * 20 + "2"])
    assert found.index("a", 1) == 2
    assert found.index("a", -5, -1) == 0
    assert found.index("x" * 20 + "2") == 4
    assert "x" * 21 not in found
    for value in ("b", 5, "\ud800"):
        with pytest.raises(ValueError, match="is not among the labels"):
            found.index(value, 2)
    assert found.count("a") == 2
    for number in (5, -6):
        with pytest.raises(IndexError):
            found[number]


def test_many_bytes_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    strings = [*HOSTILE, LONG, *HOSTILE]
    found, order = TextLabels.of(strings), list(range(len(strings))) * 2
    random.Random(1).shuffle(order)
    for part_bytes in (1, 7, 1000):
        monkeypatch.setattr(labels, "PART_BYTES", part_bytes)
        assert found.take(order) == [strings[number] for number in order]
        trailing = np.full(len(order), ord(","), np.uint8)
        assert found.spell(np.array(order), trailing).decode() == "".join(f"{strings[number]}," for number in order)
    monkeypatch.setattr(labels, "PART_LABELS", 3)
    assert list(found) == strings


@pytest.mark.parametrize("odd", [["a", 5], ["a", None], [b"a"], ["ä", 5]])
def test_what_is_no_text_is_no_label(odd: list[Any]) -> None:
    with pytest.raises(InputError, match="is no text; pass strings"):
        TextLabels.of(odd)


@pytest.mark.parametrize("odd", ["\ud800", "a\udfff"])
def test_half_a_character_is_no_label(odd: str) -> None:
    with pytest.raises(InputError, match="is no text that can be written; name the vertex otherwise"):
        TextLabels.of(["a", odd, "\ude00"])


@pytest.mark.parametrize(
    ("data", "offsets"),
    [
        (np.zeros(3, np.int8), np.array([0, 3])),
        (np.zeros((3, 1), np.uint8), np.array([0, 3])),
        (np.zeros(3, np.uint8), np.array([0, 3], np.int32)),
        (np.zeros(3, np.uint8), np.empty(0, np.int64)),
        (np.zeros(3, np.uint8), np.array([0, 4])),
        (np.zeros(3, np.uint8), np.array([-1, 3])),
        (np.zeros(3, np.uint8), np.array([0, 2, 1, 3])),
    ],
)
def test_offsets_that_lie_are_refused(data: NDArray[Any], offsets: NDArray[Any]) -> None:
    with pytest.raises(InputError, match="labels"):
        TextLabels(data, offsets)


@examples
@given(texts, st.slices(60))
def test_labels_are_arrow_arrays_in_the_same_memory(strings: list[str], part: slice) -> None:
    found = TextLabels.of(strings)
    assert found[part].to_arrow().to_pylist() == strings[part]
    assert found.to_arrow().type == pyarrow.large_string()
    again = TextLabels.of_arrow(pyarrow.array(strings, pyarrow.large_string())[1:])
    assert again == strings[1:]
    if strings:
        assert found.to_arrow().buffers()[1].address == found.offsets.__array_interface__["data"][0]


def test_arrow_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match="wedgewise\\[arrow\\]"):
        TextLabels.of(["a"]).to_arrow()


def test_labels_of_vertices_are_of_the_same_kind() -> None:
    chosen = np.array([2, 0])
    assert pick_labels(range(3), chosen).tolist() == [2, 0]
    assert pick_labels(np.array([5, 6, 7]), chosen).tolist() == [7, 5]
    assert pick_labels([("a", 1), 2, None], chosen) == [None, ("a", 1)]
    picked = pick_labels(TextLabels.of(["a", "b", "c"]), chosen)
    assert isinstance(picked, TextLabels)
    assert picked == ["c", "a"]


def test_labels_of_another_library_are_compact_where_all_are_text() -> None:
    assert isinstance(compact_labels(["a", "b"]), TextLabels)
    for objects in ([], ["a", 5], [("a",)], ["\ud800", "a"]):
        assert compact_labels(objects) is objects


# LabelTable


@both_ways
@examples
@given(st.lists(texts, max_size=4), texts)
def test_a_table_numbers_by_first_appearance(compiled: bool, pieces: list[list[str]], asked: list[str]) -> None:
    table = LabelTable(compiled=compiled)
    found = [number for piece in pieces for number in table.number(*spans_of(piece)).tolist()]
    numbers, distinct = numbered([text for piece in pieces for text in piece])
    assert found == numbers
    assert len(table) == len(distinct)
    assert table.labels() == distinct
    assert table.labels(1, 3) == distinct[1:3]
    expected = [distinct.index(text) if text in distinct else -1 for text in asked]
    assert table.find(*spans_of(asked)).tolist() == expected
    assert len(table) == len(distinct)


@both_ways
def test_hostile_labels_are_told_apart(compiled: bool) -> None:
    long = [] if jit.JIT_DISABLED else [LONG, LONG + "z", LONG[:-1] + "z", LONG[1:]]
    strings = [*HOSTILE, *long, *reversed(HOSTILE), *long]
    table = LabelTable(compiled=compiled)
    numbers, distinct = numbered(strings)
    assert table.number(*spans_of(strings)).tolist() == numbers
    assert table.labels() == distinct
    assert table.find(*spans_of([*distinct, "nobody"])).tolist() == [*range(len(distinct)), -1]


@both_ways
def test_spans_may_lie_anywhere_and_overlap(compiled: bool) -> None:
    text = np.frombuffer(b"abcabcabc", np.uint8)
    table = LabelTable(compiled=compiled)
    begins, lengths = np.array([6, 0, 3, 1, 9, 0]), np.array([3, 3, 3, 2, 0, 9])
    assert table.number(text, begins, lengths).tolist() == [0, 0, 0, 1, 2, 3]
    assert table.labels() == ["abc", "bc", "", "abcabcabc"]


@pytest.mark.parametrize("seed", [0, 1 << 31, 2**64 - 1, 0x8765432187654321])
def test_numbers_do_not_depend_on_the_seed(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """With seed 0 many labels have one hash: the bytes tell them apart."""
    monkeypatch.setattr(label_table, "SEED", np.uint64(seed))
    prefixes = ["", "same", "same prefix of many bytes "]
    strings = [f"{prefix}{number % 97}" for number in range(400) for prefix in prefixes] + HOSTILE
    table = LabelTable(compiled=True)
    numbers, distinct = numbered(strings)
    assert table.number(*spans_of(strings)).tolist() == numbers
    assert table.find(*spans_of(distinct)).tolist() == list(range(len(distinct)))
    assert table.find(*spans_of(["same98", ""])).tolist() == [-1, distinct.index("")]


def test_labels_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """All hashes are those of the highest slot: every look-up goes through all labels, and around the table's end."""
    monkeypatch.setattr(_label_kernel, "_hash", lambda *_span: np.uint64(2**32 - 1))
    monkeypatch.setattr(jit, "JIT_DISABLED", True)  # a kernel as plain Python calls what stands there now
    monkeypatch.setattr(label_table, "FIRST_PART", 4)
    strings = [*HOSTILE, *HOSTILE]
    table = LabelTable(compiled=True)
    numbers, distinct = numbered(strings)
    assert table.number(*spans_of(strings)).tolist() == numbers
    assert table.find(*spans_of([*distinct, "b"])).tolist() == [*range(len(distinct)), -1]


def test_a_table_grows_with_its_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_table, "FIRST_PART", 2)
    monkeypatch.setattr(label_table, "PART_LABELS", 50)
    monkeypatch.setattr(label_table, "PART_BYTES", 100)
    strings = [f"label {number * 7919 % 1000}" for number in range(1500)]
    table = LabelTable(compiled=True)
    early = None
    for begin in range(0, len(strings), 300):
        numbers, distinct = numbered(strings[: begin + 300])
        assert table.number(*spans_of(strings[begin : begin + 300])).tolist() == numbers[begin:]
        assert 2 * len(table) <= len(table._slots)
        early = early or table.labels()
    assert table.labels() == distinct
    assert early == distinct[:300]
    assert table.find(*spans_of(strings)).tolist() == numbers


@both_ways
def test_labels_that_have_numbers_keep_them(compiled: bool) -> None:
    given_labels = TextLabels.of(["out", "ada", "", "bob", "ada"])[1:]
    table = LabelTable(given_labels, compiled=compiled)
    assert len(table) == 4
    assert table.find(*spans_of(["ada", "", "bob", "out"])).tolist() == [0, 1, 2, -1]
    assert table.number(*spans_of(["bob", "eve", "ada", "out"])).tolist() == [2, 4, 0, 5]
    assert table.labels() == ["ada", "", "bob", "ada", "eve", "out"]
    assert given_labels == ["ada", "", "bob", "ada"]
    only = LabelTable(TextLabels.of(["ada"]), compiled=compiled)
    assert only.number(*spans_of([""])).tolist() == [1]


def test_tables_of_parts_are_merged_by_their_spans() -> None:
    first, second = LabelTable(compiled=True), LabelTable(compiled=False)
    here, there = ["a", "b", "a", "c"], ["d", "b", "d", "a"]
    ours, theirs = first.number(*spans_of(here)), second.number(*spans_of(there))
    renamed = first.number(*second.labels().spans())
    assert [*ours.tolist(), *renamed[theirs].tolist()] == numbered(here + there)[0]
    assert first.labels() == ["a", "b", "c", "d"]


def test_a_dictionary_gives_way_to_kernels_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_table, "FEW_LABELS", 10)
    monkeypatch.setattr(_label_kernel.number_spans, "_loaded", {})
    asked: list[float] = []
    monkeypatch.setattr(jit, "pays", lambda seconds, *_: asked.append(seconds) or len(asked) > 1)  # type: ignore[func-returns-value]
    strings = [str(number % 30) for number in range(100)]
    table = LabelTable()
    assert table.number(*spans_of(strings[:10])).tolist() == numbered(strings[:10])[0]
    assert asked == []
    assert table.number(*spans_of(strings[:20])).tolist() == numbered(strings[:20])[0]
    assert (len(asked), len(table._slots)) == (1, 0)
    assert table.number(*spans_of(strings)).tolist() == numbered(strings)[0]
    assert (len(asked), len(table._slots) > 0) == (2, True)
    assert table.labels() == numbered(strings)[1]
    assert len(LabelTable(table.labels())._slots) > 0
    assert len(asked) == (3 if jit.JIT_DISABLED else 2)  # a kernel that is loaded is taken without asking


def test_too_many_labels_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_table, "MAX_LABELS", 3)
    table = LabelTable(compiled=True)
    table.number(*spans_of(["a", "b", "c"]))
    with pytest.raises(InputError, match="more than 3 distinct labels"):
        table.number(*spans_of(["d"]))


def test_a_label_of_gigabytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "MAX_LABEL_BYTES", 9)
    assert len(spans_of(["x" * 9])[2]) == 1
    with pytest.raises(InputError, match="a label of 10 bytes; labels have at most 9"):
        spans_of(["", "x" * 10])


@pytest.mark.compiled
def test_a_table_takes_what_it_says() -> None:
    """60 bytes per distinct label, 2.5 times its text, and 4 MiB, whatever the number of labels is."""
    for distinct in (100_000, 250_000, 400_000):
        texts_of = TextLabels.of([f"label{number:07}" for number in range(distinct)])
        text, begins, lengths = texts_of.spans()
        tracemalloc.start()
        try:
            table = LabelTable(compiled=True)
            before = tracemalloc.get_traced_memory()[0]
            numbers = table.number(text, begins, lengths)
            peak = tracemalloc.get_traced_memory()[1] - before - numbers.nbytes
        finally:
            tracemalloc.stop()
        assert peak <= 60 * distinct + 2.5 * len(text) + (4 << 20)
        assert table.nbytes <= 36 * distinct + 12 * distinct + 1.5 * len(text) + (4 << 20)


@pytest.mark.compiled
def test_hashes_are_spread_evenly() -> None:
    """Labels of every usual kind lie about as close to their own slots as random numbers would: 0.5 / (1 − load)."""
    for kind in ("{}", "user{:07}", "{:x}", "https://example.org/{}/about", "{:>4}"):
        table = LabelTable(compiled=True)
        strings = [kind.format(number) for number in range(60_000)]
        table.number(*spans_of(strings))
        slots = table._slots
        used = np.flatnonzero(slots)
        own = slots[used] >> np.uint64(64 - (len(slots).bit_length() - 1))
        assert ((used - own.astype(np.int64)) % len(slots)).mean() < 0.7
