// What: TRUST on three blocks. For every row a, a hash table of its row of ik is built once; then every id of the rows
//   of jk that its arcs of ij lead to is looked up in it. Every hit is a triangle.
// Paper: S. Pandey et al., "TRUST: Triangle counting reloaded on GPUs", IEEE TPDS 32(11), 2021, 2646-2660, section 5
//   and figure 10, with the tables and combinations of sections 3 and 4.
// Who does what: a block of 1,024 threads with 1,024 buckets for each row with more than 100 arcs in ij, or with more
//   in ik than 32 buckets have places on chip; a warp with 32 buckets for each other row with arcs in both. Rows are
//   listed for every task, by triple_rows.cu, and taken from a counter in chunks; when there are none for whole blocks
//   any more, their warps go on. Tables, and how rows of the second hop are combined, are as in trust.cu: a full bucket
//   passes ids on, a row longer than the table comes in pieces.
// Input: a triple in any numbering, rows ascending; the listed rows of one share.
// Output: triangles and look-ups, added to found[0] and found[1].
// Memory: 4 bytes per row of the share; 4 per place of the tables of the blocks that run at once.
// Differs from the authors' code in: what trust.cu and triple_rows.cu say; a long row of ik makes a row large too, as
//   buckets would be searched for long. A table that is built for every arc is built by one team. A look-up reads an id
//   of 4 bytes, 1.4e12 a second from L2 on an H200, where shared memory answers 8.4e12. At the pace of the authors'
//   program, 2.5e11 a second, 90 ms are expected, not measured, for all tasks of Kronecker 22, less what rows without
//   arcs in ik save.
#include "common/buckets.cuh"
#include "common/occupancy.cuh"
#include "common/second_hop.cuh"
#include "common/triples.cuh"

#ifndef COMBINATION
#define COMBINATION 0
#endif

// Builds the table of a's row of ik, piece by piece if it is longer than the table, and looks up the second hop in
// each; for every arc of ij by itself where per_arc.
template <class Team, class How>
__device__ __forceinline__ void count_row(const Triple& blocks, u32 a, u32 per_arc, const Buckets& table, Rows rows,
                                          How how, Found* found) {
    const Graph graph = {blocks.jk.offsets, blocks.jk.heads, blocks.ij.heads};
    const offset_t arcs_end = blocks.ij.offsets[a + 1], end = blocks.ik.offsets[a + 1];
    const offset_t arcs_begin = blocks.ij.offsets[a], step = per_arc ? 1 : arcs_end - arcs_begin;
    for (offset_t arc = arcs_begin; arc < arcs_end; arc += step) {
        u32 length;
        for (offset_t begin = blocks.ik.offsets[a]; begin < end; begin += length) {
            length = u32(min(offset_t(table.count * table.capacity), offset_t(end - begin)));
            fill_table<Team>(table, blocks.ik.heads + begin, length);
            look_up_rows<Team>(graph, table, rows, how, {arc, offset_t(arc + step)}, found);
        }
    }
}

// Large rows are for blocks, small ones for warps; taken[0] and taken[1] count the chunks that were taken of both.
// Shared: two offsets per thread, a count and cached ids per bucket; buckets are a power of two for each warp.
extern "C" __global__ void __launch_bounds__(MOST_THREADS, FULL_BLOCKS)
count_rows(const offset_t* ij_offsets, const u32* ij_heads, const offset_t* ik_offsets, const u32* ik_heads,
           const offset_t* jk_offsets, const u32* jk_heads, const u32* places, const u32* lengths, u32 count,
           u32 launch, u32 launches, u32* taken, u32 chunk, u32 per_arc, u32 buckets, u32 cached, u32 capacity,
           u32* far, u32* copied, u32 lanes, u64* found) {
    DYNAMIC_SHARED(offset_t, stops);
    __shared__ u64 warp_sums[MOST_WARPS];
    __shared__ u32 turns[2 * MOST_WARPS];
    const Triple blocks = {{ij_offsets, ij_heads}, {ik_offsets, ik_heads}, {jk_offsets, jk_heads}};
    const Listed listed = {places, lengths, count, launch, launches};
    const Rows rows = {stops, stops + blockDim.x, warp_sums};
    u32* const asked = reinterpret_cast<u32*>(rows.shifts + blockDim.x);
    u32* const far_of_block = far + u64(blockIdx.x) * buckets * (capacity - cached);
    const Buckets table = {asked, asked + buckets, far_of_block, buckets, cached, capacity};
#if COMBINATION == 0
    const Virtual how = {};
#elif COMBINATION == 1
    const Physical how = {copied + u64(blockIdx.x) * blockDim.x * COPIED_PER_THREAD};
#else
    const Apart how = {lanes};
#endif
    Found sums = {0, 0};
    take_chunks<BlockTeam>(0, large_of_launch(listed), chunk, taken, turns, [&](offset_t number) {
        count_row<BlockTeam>(blocks, large_row(listed, u32(number)), per_arc, table, rows, how, &sums);
    });
    __syncthreads();  // all have read the last turn
    take_chunks<WarpTeam>(0, small_of_launch(listed), chunk, taken + 1, turns + threadIdx.x / WARP,
                          [&](offset_t number) {
        const u32 a = small_row(listed, u32(number));
        count_row<WarpTeam>(blocks, a, per_arc, part_of_warp(table), part_of_warp(rows), how, &sums);
    });
    add_block_found(found, sums.triangles, sums.tests);
}
