"""Bugs of kernels for GPUs and of their launches; the emulator runs them, some under a sanitizer."""

from __future__ import annotations

from mutants.edits import Edit
from mutants.mutant import Mutant, caught_by

FOLDER = "algorithms/gpu"
SMALL_BLOCKS = "emulate/test_kernels_emulated.py::test_answers_at_small_blocks"
TRUSSES = "emulate/test_trusses.py::test_trusses_are_those_of_the_reference"

ON_GPU = (
    Mutant(
        "lane-mask",
        "half of the lanes of a warp are named where all of them take part",
        (Edit(f"{FOLDER}/common/types.cuh", "#define ALL_LANES 0xFFFFFFFFu", "#define ALL_LANES 0x0000FFFFu"),),
        caught_by(SMALL_BLOCKS, keyword="polak"),
    ),
    Mutant(
        "warps-that-are-not-added",
        "only the first warp of a block adds what it found",
        (
            Edit(
                f"{FOLDER}/common/block_sum.cuh",
                "    const bool is_warp = lane < blockDim.x / WARP;\n",
                "    const bool is_warp = lane < 1;\n",
            ),
        ),
        caught_by(SMALL_BLOCKS, keyword="green"),
    ),
    Mutant(
        "store-for-atomic-add",
        "warps write their sums over each other",
        (
            Edit(
                f"{FOLDER}/common/reduce.cuh",
                "    if (threadIdx.x % WARP == 0 && found > 0) atomicAdd(total, found);\n",
                "    if (threadIdx.x % WARP == 0 && found > 0) *total = found;\n",
            ),
        ),
        caught_by(SMALL_BLOCKS, keyword="polak"),
    ),
    Mutant(
        "32-bit-atomic",
        "blocks add to the lower half of a total",
        (
            Edit(
                f"{FOLDER}/common/block_sum.cuh",
                "    if (lane % (WARP / 2) == 0 && of_block > 0) atomicAdd(found + (lane > 0), of_block);\n",
                "    u32* const halves = reinterpret_cast<u32*>(found + (lane > 0));\n"
                "    if (lane % (WARP / 2) == 0 && of_block > 0) atomicAdd(halves, u32(of_block));\n",
            ),
        ),
        caught_by("emulate/test_kernels_emulated.py::test_sums_go_on_beyond_32_bits", keyword="hu"),
    ),
    Mutant(
        "stride-by-block",
        "blocks step by their threads where they have to step by the grid",
        (Edit(f"{FOLDER}/hu.cu", "number < end; number += gridDim.x)", "number < end; number += blockDim.x)"),),
        caught_by(SMALL_BLOCKS, keyword="hu-"),
    ),
    Mutant(
        "narrow-launch",
        "the number of a thread wraps at 8 bits of blocks, as 32 bits do on a large card",
        (
            Edit(
                f"{FOLDER}/polak.cu",
                "begin + u64(blockIdx.x) * blockDim.x + threadIdx.x;",
                "begin + u64(u8(blockIdx.x)) * blockDim.x + threadIdx.x;",
            ),
        ),
        caught_by(SMALL_BLOCKS, keyword="polak"),
    ),
    Mutant(
        "merge-path-ties",
        "< for <= on the diagonal: of equal ids both threads take one, or neither does",
        (
            Edit(
                f"{FOLDER}/common/merge_path.cuh",
                "        if (a.at[middle] <= b.at[taken - 1 - middle]) low = middle + 1;\n",
                "        if (a.at[middle] < b.at[taken - 1 - middle]) low = middle + 1;\n",
            ),
        ),
        caught_by("emulate/test_green.py"),
    ),
    Mutant(
        "search-off-by-one",
        "a binary search that never looks at the place it has come to",
        (
            Edit(
                f"{FOLDER}/common/search.cuh",
                "        if (ids[low + half] <= wanted) low += half;\n",
                "        if (ids[low + half] < wanted) low += half;\n",
            ),
        ),
        caught_by(SMALL_BLOCKS, keyword="hu-"),
    ),
    Mutant(
        "bucket-overflow-dropped",
        "an id that finds its bucket full is forgotten",
        (
            Edit(
                f"{FOLDER}/common/buckets.cuh",
                "    for (; level >= table.capacity; level = atomicAdd(table.asked + bucket, 1u)) "
                "bucket = bucket_of(table, bucket + 1);\n",
                "    if (level >= table.capacity) return;\n",
            ),
        ),
        caught_by("emulate/test_trust.py"),
    ),
    Mutant(
        "two-of-three-edges-on-gpu",
        "the edge opposite to the lowest vertex gets no support",
        (Edit(f"{FOLDER}/eager.cu", "            atomicAdd(supports + other, 1u);\n", ""),),
        caught_by(TRUSSES, keyword="eager"),
    ),
    Mutant(
        "support-lost-in-a-race",
        "supports are read, increased and written without an atomic",
        (
            Edit(
                f"{FOLDER}/eager.cu",
                "            atomicAdd(supports + behind, 1u);\n",
                "            supports[behind] += 1u;\n",
            ),
        ),
        caught_by(
            "emulate/test_kernels_sanitized.py::test_no_sanitizer_has_anything_to_report_of_trusses_and_triples",
            keyword="thread and eager",
            deep=True,
        ),
    ),
    Mutant(
        "missing-syncwarp",
        "lanes write over what other lanes have not read yet",
        (Edit(f"{FOLDER}/eager.cu", "        __syncwarp();  // all lanes have read what others write over\n", ""),),
        caught_by(
            "emulate/test_kernels_sanitized.py::test_no_sanitizer_has_anything_to_report_of_trusses_and_triples",
            keyword="thread and eager",
            deep=True,
        ),
    ),
    Mutant(
        "missing-barrier",
        "a block looks ids up in a cache that its other warps are still filling",
        (Edit(f"{FOLDER}/hu.cu", "        __syncthreads();  // the cache is filled\n", ""),),
        caught_by(
            "emulate/test_kernels_sanitized.py::test_no_sanitizer_has_anything_to_report",
            keyword="thread and hu",
            deep=True,
        ),
    ),
    Mutant(
        "bitmap-without-last-word-on-gpu",
        "a bitmap has n / 32 words, rounded down",
        (
            Edit(
                f"{FOLDER}/bisson.py",
                "        words, block = -(-bits // WORD_BITS), whole_warps(knobs)\n",
                "        words, block = max(1, bits // WORD_BITS), whole_warps(knobs)\n",
            ),
        ),
        caught_by(
            "emulate/test_kernels_sanitized.py::test_no_sanitizer_has_anything_to_report",
            keyword="address and bisson",
            deep=True,
        ),
    ),
    Mutant(
        "launch-lost",
        "the first of several launches is never made",
        (
            Edit(
                f"{FOLDER}/_launches.py",
                "        return DeviceWork.at_once(made, found)\n",
                "        return DeviceWork.at_once(made[len(made) > 1 :], found)\n",
            ),
        ),
        caught_by("emulate/test_kernels_emulated.py::test_answers_over_many_launches", keyword="hu-count or polak"),
    ),
    Mutant(
        "stale-gpu-kernel",
        "kernels are compiled from texts that only name their headers, which CuPy's cache does not look at",
        (
            Edit(
                "machine/gpu.py",
                '        return _pasted((KERNEL_FOLDER / name).read_text(encoding="utf-8"), seen)\n',
                "        return match.group(0)\n",
            ),
        ),
        caught_by("machine/test_gpu_host.py::test_kernel_text_is_one_piece_with_its_defines"),
    ),
    Mutant(
        "task-taken-twice",
        "a thread takes a task that a stream has taken already",
        (
            Edit(
                "run/_hybrid_queue.py",
                "        free = self._is_free & self._for_threads\n",
                "        free = self._for_threads\n",
            ),
        ),
        caught_by("emulate/test_hybrid.py::test_the_same_count_whatever_the_schedule", interpreted=True),
    ),
    Mutant(
        "blocks-read-before-they-came",
        "kernels do not wait for the copies of the blocks that they read",
        (
            Edit(
                "run/_hybrid_streams.py",
                "            for shipment in shipments_of(lease.blocks.values()):\n                stream.follow(",
                "            for shipment in shipments_of(()):\n                stream.follow(",
            ),
        ),
        caught_by("emulate/test_hybrid.py::test_the_same_count_whatever_the_schedule", interpreted=True),
    ),
)
