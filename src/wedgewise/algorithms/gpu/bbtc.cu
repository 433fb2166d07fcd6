// What: BBTC on a device: one task of three blocks, every arc a -> b of ij intersecting a's row of ik with b's row of
//   jk, by merging them (list), or by a map of the columns in which a's row is marked (hashmap).
// Paper: BBTC (Yasar et al., doi:10.1109/TPDS.2021.3093240), Algorithms 5, 6 and 7. All threads of a device work on one
//   task; the paper does not say which of them takes what.
// Who does what: by lists, a thread takes an arc; a warp has 256 consecutive ones and searches for its first row once.
//   By a map, a block takes a row, or a warp does, where its arcs of ij are no more than a block has threads and every
//   warp has a map in shared memory. Rows are taken from a counter; the team marks the row of ik, and shares out the
//   rows of jk as one list. A map is a bit per column, in shared memory where half of all threads still run.
// Input: a triple in any numbering, rows ascending; the rows of the share with arcs in ij and ik, by triple_rows.cu.
// Output: triangles and steps of the merges or look-ups, added to found[0] and found[1].
// Memory: 4 bytes per row; for a map in global memory a bit per column and block that runs at once, 1 GiB at most
//   unless one takes more. Shared: two offsets per thread and the maps.
// Differs from the authors' code in: theirs has one thread for each row of ij, with a map of its own in global memory
//   or a merge for each of its arcs, so that a hub keeps one thread busy. Here arcs, or ids two hops away, are shared
//   out evenly, and a whole graph is the one task of one part. A look-up reads an id of 4 bytes: from L2 an H200 reads
//   1.4e12 a second, the 2.3e10 of Kronecker 22 in one part in 17 ms, and looks them up on chip in 3; 60 to 90 ms are
//   expected, as by TRUST, not measured. Lists wait for the longest merge of a warp, as by Polak.
#include "common/merge.cuh"
#include "common/occupancy.cuh"
#include "common/search.cuh"
#include "common/second_hop.cuh"
#include "common/triples.cuh"

#ifndef SHARED_MAPS
#define SHARED_MAPS 0
#endif

// A bit per column.
struct Map {
    u32* words;
};

__device__ __forceinline__ bool holds(const Map& map, u32 column) { return map.words[column / 32] >> column % 32 & 1; }

// The chunk_arcs arcs of chunk launch + launches * (number of the warp); rows of other shares are left out.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, FULL_BLOCKS)
merge_arcs(const offset_t* ij_offsets, const u32* ij_heads, const offset_t* ik_offsets, const u32* ik_heads,
           const offset_t* jk_offsets, const u32* jk_heads, u32 rows, u64 arcs, u32 chunk_arcs, u32 share, u32 shares,
           u32 launch, u32 launches, u64* found) {
    const u64 begin = (u64(WarpTeam::number()) * launches + launch) * chunk_arcs, end = min(begin + chunk_arcs, arcs);
    Found sums = {0, 0};
    if (begin < end) {
        u32 a = row_of(ij_offsets, rows, offset_t(begin));
        const u32 last = a + row_of(ij_offsets + a, rows - a, offset_t(end - 1));
        for (u64 arc = begin + WarpTeam::rank(); arc < end; arc += WARP) {
            a += row_of(ij_offsets + a, last + 1 - a, offset_t(arc));
            if (a % shares != share) continue;
            const u32 b = ij_heads[arc];
            const Merged merged = merge_lists(ik_heads, ik_offsets[a], ik_offsets[a + 1], jk_heads, jk_offsets[b],
                                              jk_offsets[b + 1]);
            sums.triangles += merged.common;
            sums.tests += merged.steps;
        }
    }
    add_block_found(found, sums.triangles, sums.tests);
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

// Large rows are for blocks, small ones for warps; there are no small ones unless each warp has a map. taken[0] and
// taken[1] count those that were taken of both.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, FULL_BLOCKS)
look_up_arcs(const offset_t* ij_offsets, const u32* ij_heads, const offset_t* ik_offsets, const u32* ik_heads,
             const offset_t* jk_offsets, const u32* jk_heads, const u32* places, const u32* lengths, u32 count,
             u32 launch, u32 launches, u32* taken, u32 words, u32 maps_of_block, u32* maps, u64* found) {
    DYNAMIC_SHARED(offset_t, stops);
    __shared__ u64 warp_sums[MOST_WARPS];
    __shared__ u32 turns[2 * MOST_WARPS];
    const Triple blocks = {{ij_offsets, ij_heads}, {ik_offsets, ik_heads}, {jk_offsets, jk_heads}};
    const Listed listed = {places, lengths, count, launch, launches};
    const Rows rows = {stops, stops + blockDim.x, warp_sums};
    u32* const first_map = maps_of(rows, maps, words, maps_of_block);
    const u32 warp = threadIdx.x / WARP;
    Found sums = {0, 0};
    take_chunks<BlockTeam>(0, large_of_launch(listed), 1, taken, turns, [&](offset_t number) {
        count_row<BlockTeam>(blocks, large_row(listed, u32(number)), {first_map}, rows, &sums);
    });
    __syncthreads();  // all have read the last turn
    take_chunks<WarpTeam>(0, small_of_launch(listed), 1, taken + 1, turns + warp, [&](offset_t number) {
        const Map map = {first_map + u64(warp) * words};
        count_row<WarpTeam>(blocks, small_row(listed, u32(number)), map, part_of_warp(rows), &sums);
    });
    add_block_found(found, sums.triangles, sums.tests);
}
