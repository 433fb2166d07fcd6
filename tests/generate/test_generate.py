"""Generators: the same pairs everywhere, any block alone, and the counts that formulas and tables promise."""

from __future__ import annotations

import doctest
import hashlib
from collections.abc import Callable
from itertools import pairwise
from math import comb
from types import ModuleType

import numpy as np
import pytest
from helpers.graphs import (
    CLOSED_FORMS,
    FIXTURES,
    PUBLISHED_GENERATED,
    TRUTHS,
    SmallGraph,
    count_by_product,
    count_by_triples,
    fixture_pairs,
    published_generated,
    small_graph,
)

from wedgewise import datasets, generate
from wedgewise.datasets import BUNDLED, bundled
from wedgewise.errors import InputError, UnknownNameError, WedgewiseError
from wedgewise.generate import GENERATORS, EdgeStream, closed_forms, random_graphs
from wedgewise.generate import stream as streams
from wedgewise.generate import words as counters
from wedgewise.generate.stream import BLOCK_PAIRS
from wedgewise.generate.words import half_words, key_of, numbers_below, permuted, words

RANDOM_GRAPHS = (
    generate.kronecker(10, seed=1),
    generate.kronecker(7, edgefactor=3, seed=2**64 - 1),
    generate.rmat(9, 8, a=0.45, b=0.22, c=0.22, seed=5),
    generate.uniform(1000, 5000, seed=1),
    generate.small_world(500, 6, 0.1, seed=1),
)
MAX_EDGES_COUNTED = 350_000


def digest(stream: EdgeStream) -> str:
    """A fingerprint of all pairs, whatever the byte order of the machine."""
    return hashlib.sha256(stream.pairs().astype("<i8").tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("stream", CLOSED_FORMS, ids=lambda stream: stream.name)
def test_closed_form_is_simple_and_has_its_formula_of_triangles(stream: EdgeStream) -> None:
    pairs = stream.pairs()
    edges = {(min(u, v), max(u, v)) for u, v in pairs.tolist()}
    assert len(edges) == stream.pairs_count == len(pairs)
    assert all(0 <= u < v < stream.n for u, v in edges)
    assert stream.expected_triangles == count_by_product(pairs, stream.n)
    assert type(stream.expected_triangles) is int


@pytest.mark.parametrize("name", PUBLISHED_GENERATED)
def test_published_sizes_and_counts_are_reproduced(name: str) -> None:
    stream, facts = published_generated(name), PUBLISHED_GENERATED[name]
    assert (stream.n, stream.pairs_count, stream.expected_triangles) == tuple(facts.values())
    if stream.pairs_count <= MAX_EDGES_COUNTED:
        assert count_by_product(stream.pairs(), stream.n) == facts["triangles"]


def test_turan_counts_agree_with_looking_at_every_triple() -> None:
    for n in range(9):
        for r in range(1, 10):
            stream = generate.turan(n, r)
            graph = small_graph(n, stream.pairs().tolist())
            assert (graph.m, count_by_triples(graph)) == (stream.pairs_count, stream.expected_triangles), (
                n,
                r,
            )


def test_degrees_of_regular_families() -> None:
    for stream, degree in (
        (generate.torus3d(5), 6),
        (generate.hypercube(6), 6),
        (generate.petersen(), 3),
        (generate.octahedron(4), 6),
        (generate.cycle(9), 2),
        (generate.small_world(40, 6, 0), 6),
    ):
        assert set(np.bincount(stream.pairs().ravel(), minlength=stream.n)) == {degree}, stream.name


def test_petersen_has_girth_five() -> None:
    graph = small_graph(10, generate.petersen().pairs().tolist())
    adjacency = np.zeros((10, 10), int)
    adjacency[tuple(graph.pairs.T)] = 1
    adjacency += adjacency.T
    squares = adjacency @ adjacency
    assert set(squares[~np.eye(10, dtype=bool)]) == {0, 1}  # no two vertices have two common neighbours
    assert np.array_equal(squares + adjacency, np.ones((10, 10), int) + 2 * np.eye(10, dtype=int))


@pytest.mark.parametrize("stream", CLOSED_FORMS + RANDOM_GRAPHS, ids=lambda stream: stream.name)
def test_any_block_alone_equals_its_part_of_the_whole(stream: EdgeStream) -> None:
    whole = stream.pairs()
    last = stream.pairs_count
    cuts = sorted({0, min(1, last), last // 3, last // 2, last})
    for start, stop in pairwise(cuts):
        assert np.array_equal(stream.block(start, stop), whole[start:stop])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_blocks_are_the_whole_for_any_number_of_threads(threads: int) -> None:
    stream = generate.uniform(100_000, 9 * BLOCK_PAIRS + 5, seed=3)
    blocks = list(stream.blocks(threads=threads))
    assert [len(block) for block in blocks] == [BLOCK_PAIRS] * 9 + [5]
    assert np.array_equal(np.concatenate(blocks), stream.pairs())
    assert np.array_equal(stream.pairs(threads=threads), stream.pairs())


def test_the_words_are_those_of_splitmix64() -> None:
    # The first outputs of SplitMix64 seeded with 1234567, as published with its reference code.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert words(1234567, 0, 4).tolist() == published
    assert words(1234567, 2, 4).tolist() == published[2:]
    low_and_high = [half for word in published for half in (word % 2**32, word >> 32)]
    assert half_words(1234567, 0, 8).tolist() == low_and_high
    assert half_words(1234567, 3, 6).tolist() == low_and_high[3:6]


def test_numbers_below_a_bound_are_the_scaled_words() -> None:
    drawn = words(7, 10, 2000).tolist()
    for bound in (1, 3, 1000, 2**31 - 1, 2**32):
        assert numbers_below(bound, 7, 10, 2000).tolist() == [word * bound >> 64 for word in drawn]


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 8, 13])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_the_permutation_is_one_to_one(bits: int, dtype: type) -> None:
    image = permuted(np.arange(2**bits, dtype=dtype), bits, key_of(1, 2))
    assert sorted(image.tolist()) == list(range(2**bits))
    assert np.array_equal(image, permuted(np.arange(2**bits, dtype=np.uint64), bits, key_of(1, 2)))


def test_the_permutation_separates_id_and_degree() -> None:
    stream = generate.kronecker(12, seed=4)
    degrees = np.bincount(stream.pairs().ravel(), minlength=stream.n)
    assert abs(np.corrcoef(np.arange(stream.n), degrees)[0, 1]) < 0.1
    plain = generate.rmat(12, a=0.57, b=0.19, c=0.19, seed=4)
    unpermuted = np.bincount(plain.pairs().ravel(), minlength=plain.n)
    assert np.array_equal(np.sort(degrees), np.sort(unpermuted))
    assert np.argmax(unpermuted) == 0


def test_pairs_of_a_seed_never_change() -> None:
    assert {stream.name: digest(stream) for stream in RANDOM_GRAPHS} == {
        "kronecker-10-seed1": "1c8372f0141976e4",
        "kronecker-7-ef3-seed18446744073709551615": "132a5cf59a5041fc",
        "rmat-9-ef8-a0.45-b0.22-c0.22-seed5": "354da7fe49b0f8c1",
        "uniform-1000-5000-seed1": "0446a51d2d38283a",
        "small_world-500-6-p0.1-seed1": "7b962aa95285c48d",
    }


def test_seeds_differ() -> None:
    families: tuple[Callable[[int], EdgeStream], ...] = (
        lambda seed: generate.kronecker(8, seed=seed),
        lambda seed: generate.rmat(8, seed=seed),
        lambda seed: generate.uniform(500, 2000, seed=seed),
        lambda seed: generate.small_world(500, 4, 0.5, seed=seed),
    )
    for family in families:
        assert len({digest(family(seed)) for seed in (0, 1, 2, 2**63)}) == 4


def test_quadrants_are_drawn_with_their_probabilities() -> None:
    top = generate.rmat(1, 2**14, a=0.57, b=0.19, c=0.19, seed=9).pairs()
    shares = np.bincount(2 * top[:, 0] + top[:, 1], minlength=4) / len(top)
    assert np.allclose(shares, [0.57, 0.19, 0.19, 0.05], atol=0.01)


def test_probabilities_of_zero_and_one_are_certain() -> None:
    assert not generate.rmat(6, a=1, b=0, c=0).pairs().any()
    assert np.array_equal(np.unique(generate.rmat(6, a=0, b=0, c=0).pairs()), [63])
    ring = generate.small_world(30, 4, 0)
    assert count_by_product(ring.pairs(), 30) == ring.expected_triangles == 30 * comb(2, 2)
    rewired = generate.small_world(10_000, 2, 1).pairs()
    assert np.mean((rewired[:, 1] - rewired[:, 0]) % 10_000 == 1) < 0.01
    assert generate.small_world(10_000, 2, 1).expected_triangles is None


def test_small_world_rewires_the_share_asked_for_and_draws_no_loop() -> None:
    pairs = generate.small_world(20_000, 4, 0.25, seed=2).pairs()
    step = (pairs[:, 1] - pairs[:, 0]) % 20_000
    assert abs(np.mean(step > 2) - 0.25) < 0.01
    assert step.min() == 1


def test_uniform_reaches_every_vertex_equally() -> None:
    pairs = generate.uniform(10, 100_000, seed=1).pairs()
    assert np.allclose(np.bincount(pairs.ravel()) / 200_000, 0.1, atol=0.005)


def test_ids_get_wider_when_they_must() -> None:
    assert generate.uniform(2**31, 10).pairs().dtype == np.int32
    assert generate.uniform(2**31 + 1, 10).pairs().dtype == np.int64
    wide = generate.kronecker(40, edgefactor=1)
    assert wide.n == wide.pairs_count == 2**40
    far = wide.block(2**40 - 1000, 2**40)
    assert far.dtype == np.int64
    assert 2**36 < far.max() < 2**40


def test_the_published_torus_is_described_without_being_built() -> None:
    stream = generate.torus3d(464)
    assert (stream.n, stream.pairs_count, stream.expected_triangles) == (464**3, 3 * 464**3, 0)
    assert stream.block(stream.pairs_count - 3, stream.pairs_count)[:, 1].tolist() == [
        464**3 - 464,
        464**3 - 463 * 464 - 1,
        464**2 - 1,
    ]


def test_kronecker_is_named_by_scale_and_seed() -> None:
    assert generate.kronecker(18, seed=1).name == "kronecker-18-seed1"
    assert generate.kronecker(18, edgefactor=8).name == "kronecker-18-ef8-seed1"


def test_the_registry_describes_every_generator() -> None:
    assert set(GENERATORS) <= set(generate.__all__)
    examples = {"int": "5", "ints": "3,4", "float": "0.25", "text": "B1k"}
    special = {("small_world", "k"): "2"}
    for name, generator in GENERATORS.items():
        assert generator.name == name
        assert generator.summary
        assert all(parameter.help for parameter in generator.parameters)
        values = {
            item.name: item.parse(special.get((name, item.name), examples[item.kind])) for item in generator.parameters
        }
        stream = generate.generate(name, **values)
        assert stream.name.startswith(name)
        assert set(stream.parameters) == {parameter.name for parameter in generator.parameters}
        assert stream.pairs().shape == (stream.pairs_count, 2)
        required = {item.name: values[item.name] for item in generator.parameters if item.required}
        defaults = {item.name: item.default for item in generator.parameters if not item.required}
        filled = generator(**required)
        assert {name: filled.parameters[name] for name in defaults} == defaults


def test_unknown_names_are_answered_with_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match=r"no generator named 'kronecke'; there are: kronecker, rmat"):
        generate.generate("kronecke")
    with pytest.raises(UnknownNameError, match=r"complete has no parameter 'm'; there are: n"):
        generate.generate("complete", m=3)
    with pytest.raises(InputError, match=r"uniform needs n, m; pass them by name"):
        generate.generate("uniform", seed=3)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("kronecker", {"scale": -1}, "kronecker: scale=-1 cannot be used; give an int from 0 to 48"),
        ("kronecker", {"scale": 49}, "kronecker: scale=49 cannot be used"),
        ("kronecker", {"scale": 5, "seed": 2**64}, "kronecker: seed=18446744073709551616 cannot be used"),
        ("kronecker", {"scale": 5.0}, "kronecker: scale=5.0 cannot be used"),
        ("kronecker", {"scale": np.int64(5)}, "kronecker: scale=np.int64(5) cannot be used; give an int"),
        ("kronecker", {"scale": True}, "kronecker: scale=True cannot be used"),
        ("rmat", {"scale": 5, "a": 0.9, "b": 0.1, "c": 0.1}, "rmat: a+b+c=1.1 cannot be used"),
        ("rmat", {"scale": 5, "a": -0.1}, "rmat: a=-0.1 cannot be used; give a number from 0 to 1"),
        ("rmat", {"scale": 5, "a": float("nan")}, "rmat: a=nan is not a number; give one from 0 to 1"),
        ("uniform", {"n": 0, "m": 1}, "uniform: n=0 cannot be used"),
        ("uniform", {"n": 2**32 + 1, "m": 1}, "uniform: n=4294967297 cannot be used"),
        ("small_world", {"n": 10, "k": 3, "p": 0}, "small_world: k=3 cannot be used; give an even number"),
        ("small_world", {"n": 10, "k": 10, "p": 0}, "small_world: k=10 cannot be used"),
        ("small_world", {"n": 10, "k": 2, "p": 2}, "small_world: p=2 cannot be used"),
        ("torus3d", {"side": 2}, "torus3d: side=2 cannot be used; give an int from 3"),
        ("windmill", {"blades": 2**62}, "windmill: n=9223372036854775809 cannot be used"),
        ("kronecker_of_stars", {"leaves": ()}, "kronecker_of_stars: leaves=() cannot be used"),
        ("kronecker_of_stars", {"leaves": (2**31, 2**31)}, "kronecker_of_stars: n="),
        ("kronecker_of_stars", {"leaves": (3,), "variant": "B3"}, "choose one of Bk, B1k, B2k"),
        ("wheel", {"rim": 2}, "wheel: rim=2 cannot be used"),
        ("cycle", {"n": 2}, "cycle: n=2 cannot be used"),
    ],
)
def test_impossible_parameters_are_named(name: str, values: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        generate.generate(name, **values)
    assert message in str(caught.value)


def test_unreadable_parameter_text_is_named() -> None:
    for name, parameter, text in (
        ("kronecker", "scale", "ten"),
        ("small_world", "p", "1/2"),
        ("kronecker_of_stars", "leaves", "3;4"),
    ):
        item = next(item for item in GENERATORS[name].parameters if item.name == parameter)
        with pytest.raises(InputError, match=f"{parameter}: '{text}' is not of kind {item.kind}"):
            item.parse(text)


def test_the_two_oracles_agree() -> None:
    for seed in range(20):
        stream = generate.uniform(12, 30, seed=seed)
        graph = small_graph(12, stream.pairs().tolist())
        assert count_by_triples(graph) == count_by_product(stream.pairs(), 12)
    assert count_by_triples(SmallGraph(0, frozenset())) == 0


@pytest.mark.parametrize("name", TRUTHS)
def test_fixture_files_hold_what_their_truths_say(name: str) -> None:
    pairs, truth = fixture_pairs(name), TRUTHS[name]
    assert len(np.unique(pairs)) == truth["n"] == pairs.max() + 1
    proper = pairs[pairs[:, 0] != pairs[:, 1]]
    assert len(np.unique(proper, axis=0)) == len(proper) == truth["m"]
    assert np.all(proper[:, 0] < proper[:, 1])
    assert count_by_product(pairs, truth["n"]) == truth["triangles"]


def test_the_bundled_graph_is_there_and_has_its_facts() -> None:
    facts = BUNDLED["email-Enron"]
    pairs = np.loadtxt(bundled("email-Enron"), dtype=np.int64)
    assert (pairs.max() + 1, len(pairs)) == (facts.n, facts.m)
    assert count_by_product(pairs, facts.n) == facts.triangles
    with pytest.raises(UnknownNameError, match="no bundled graph named 'karate'; there are: email-Enron"):
        bundled("karate")


def test_bundled_data_stays_under_one_mebibyte() -> None:
    folders = (FIXTURES, bundled("email-Enron").parent)
    total = sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())
    assert total < 2**20


@pytest.mark.parametrize(
    "module",
    [generate, closed_forms, random_graphs, streams, counters, datasets],
    ids=lambda module: module.__name__,
)
def test_the_examples_in_the_documentation_run(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


def test_words_beyond_the_shared_steps_are_the_same_words() -> None:
    many = words(3, 10, 10 + 2**16 + 7)
    assert np.array_equal(many[2**16 :], words(3, 10 + 2**16, 10 + 2**16 + 7))


def test_errors_are_of_one_family() -> None:
    with pytest.raises(WedgewiseError):
        generate.star(-1)
    with pytest.raises(ValueError, match="leaves=-1"):
        generate.star(-1)
