// What: BBTC on a device: tasks of three blocks, every arc a -> b of ij intersecting a's row of ik with b's row of jk, by
//   merging them (list), or by a map of the columns in which a's row is marked (hashmap).
// Paper: BBTC (Yasar et al., doi:10.1109/TPDS.2021.3093240), Algorithms 5, 6 and 7. All threads of a device work on one
//   task; the paper does not say which of them takes what.
// Who does what: blocks take units of the batch from a counter: a task, or equal parts of a long one. By lists, a thread
//   takes an arc; a warp has 256 consecutive ones and searches for its first row once. By a map, a block lists the rows
//   of its unit; it takes a row, or a warp does, where its arcs of ij are no more than a block has threads and every
//   warp has a map in shared memory. The team marks the row of ik, and shares out the rows of jk as one list. A map is a
//   bit per column, in shared memory where half of all threads still run.
// Input: a batch of tasks in any numbering, rows ascending; where their blocks are.
// Output: triangles, steps of the merges or look-ups, and clock ticks of every task, added to found[task].
// Memory: 24 bytes per unit; for a map in global memory a bit per column and block that runs at once, 1 GiB at most
//   unless one takes more. Shared: two offsets and two listed rows per thread, and the maps.
// Differs from the authors' code in: theirs launches a kernel for every task, with one thread for each row of ij, which
//   has a map of its own in global memory or merges for each of its arcs, so that a hub keeps one thread busy. Here a
//   launch goes through a batch of tasks; arcs, or ids two hops away, are shared out evenly, and a whole graph is the
//   one task of one part. A look-up reads an id of 4 bytes: from L2 an H200 reads 1.4e12 a second, the 2.3e10 of
//   Kronecker 22 in one part in 17 ms, and looks them up on chip in 3. Lists wait for the longest merge of a warp, as by
//   Polak.
#include "common/listed_rows.cuh"
#include "common/merge.cuh"
#include "common/occupancy.cuh"
#include "common/search.cuh"
#include "common/second_hop.cuh"

#ifndef SHARED_MAPS
#define SHARED_MAPS 0
#endif

// A bit per column.
struct Map {
    u32* words;
};

__device__ __forceinline__ bool holds(const Map& map, u32 column) { return map.words[column / 32] >> column % 32 & 1; }

// A warp has chunk_arcs consecutive arcs of ij; a unit has every parts-th chunk of as many as there are warps. Rows of
// other shares are left out.
extern "C" __global__ void __launch_bounds__(MAX_THREADS, FULL_BLOCKS)
merge_arcs(const u64* blocks, const u32* tasks, u32 shares, const u32* units, u32 count, u32* taken, u64* found,
           u32 chunk_arcs) {
    const u32 warps = blockDim.x / WARP, warp = threadIdx.x / WARP;
    for_each_task({blocks, tasks, shares, units, count, taken, found}, [&](Unit unit, const Task& task, Found* sums) {
        const Block ij = task.blocks.ij, ik = task.blocks.ik, jk = task.blocks.jk;
        const u64 arcs = ij.offsets[task.rows_i], stride = u64(unit.parts) * warps * chunk_arcs;
        for (u64 begin = (u64(unit.part) * warps + warp) * chunk_arcs; begin < arcs; begin += stride) {
            const u64 end = min(begin + chunk_arcs, arcs);
            u32 a = row_of(ij.offsets, task.rows_i, offset_t(begin));
            const u32 last = a + row_of(ij.offsets + a, task.rows_i - a, offset_t(end - 1));
            for (u64 arc = begin + WarpTeam::rank(); arc < end; arc += WARP) {
                a += row_of(ij.offsets + a, last + 1 - a, offset_t(arc));
                if (a % shares != task.share) continue;
                const Arcs row = arcs_of(ik, a), other = arcs_of(jk, ij.heads[arc]);
                const Merged merged = merge_lists(ik.heads, row.begin, row.end, jk.heads, other.begin, other.end);
                sums->triangles += merged.common;
                sums->tests += merged.steps;
            }
        }
    });
}

// The map is clear before a row and behind it. The team meets between marking and its first look-up, when rows of the
// second hop are combined.
template <class Team>
__device__ __forceinline__ void count_row(const Triple& blocks, u32 a, Map map, Rows rows, Found* found) {
    const offset_t begin = blocks.ik.offsets[a], end = blocks.ik.offsets[a + 1];
    for (offset_t arc = begin + Team::rank(); arc < end; arc += Team::size())
        atomicOr(map.words + blocks.ik.heads[arc] / 32, 1u << blocks.ik.heads[arc] % 32);
    const Stretch arcs = {blocks.ij.offsets[a], blocks.ij.offsets[a + 1]};
    look_up_rows<Team>(Graph{blocks.jk.offsets, blocks.jk.heads, blocks.ij.heads}, map, rows, Virtual{}, arcs, found);
    for (offset_t arc = begin + Team::rank(); arc < end; arc += Team::size())
        STORE_EQUAL(map.words + blocks.ik.heads[arc] / 32, 0u);
    Team::meet();  // the marks are gone
}

// The maps of a block: maps_of_block of so many words in shared memory, or one in global memory, which is clear.
__device__ __forceinline__ u32* maps_of(Rows rows, u32* maps, u32 words, u32 maps_of_block) {
#if SHARED_MAPS
    u32* const shared = reinterpret_cast<u32*>(rows.shifts + blockDim.x);
    for (u32 word = threadIdx.x; word < words * maps_of_block; word += blockDim.x) shared[word] = 0;
    __syncthreads();  // they are clear
    return shared;
#else
    return maps + u64(blockIdx.x) * words;
#endif
}

// Large rows are for blocks, small ones for warps; there are no small ones unless each warp has a map.
extern "C" __global__ void __launch_bounds__(MAX_THREADS, FULL_BLOCKS)
look_up_arcs(const u64* blocks, const u32* tasks, u32 shares, const u32* units, u32 count, u32* taken, u64* found,
             u32 most_middles, u32 most_ends, u32 words, u32 maps_of_block, u32* maps) {
    DYNAMIC_SHARED(offset_t, stops);
    __shared__ u64 warp_sums[MAX_WARPS];
    __shared__ u32 places[MAX_LISTED];
    __shared__ u32 lengths[3];
    const Listed listed = {places, lengths};
    const Rows rows = {stops, stops + blockDim.x, warp_sums};
    u32* const first_map = maps_of(rows, maps, words, maps_of_block);
    const Map map_of_warp = {first_map + u64(threadIdx.x / WARP) * words};
    for_each_task({blocks, tasks, shares, units, count, taken, found}, [&](Unit unit, const Task& task, Found* sums) {
        list_rows(task, unit, {most_middles, most_ends}, listed, [&](u32 large, u32 small) {
            for (u32 number = 0; number < large; ++number)
                count_row<BlockTeam>(task.blocks, large_row(listed, number), {first_map}, rows, sums);
            for (u32 number = take_small(listed, 1); number < small; number = take_small(listed, 1))
                count_row<WarpTeam>(task.blocks, small_row(listed, number), map_of_warp, part_of_warp(rows), sums);
        });
    });
}
