// What: TRUST on three blocks. For every row a, a hash table of its row of ik is built once; then every id of the rows
//   of jk that its arcs of ij lead to is looked up in it. Every hit is a triangle.
// Paper: S. Pandey et al., "TRUST: Triangle counting reloaded on GPUs", IEEE TPDS 32(11), 2021, 2646-2660, section 5
//   and figure 10, with the tables and combinations of sections 3 and 4.
// Who does what: a block of 1,024 threads takes units of the batch from a counter: a task, or equal parts of a long one,
//   which have every so many rows. It lists the rows of a unit by their partial degrees. It takes each row with more
//   than 100 arcs in ij, or with more in ik than 32 buckets have places on chip, by 1,024 buckets; its warps take the
//   other rows with arcs in both, by 32 buckets each. Tables, and how rows of the second hop are combined, are as in
//   trust.cu: a full bucket passes ids on, a row longer than the table comes in pieces.
// Input: a batch of tasks in any numbering, rows ascending; where their blocks are.
// Output: triangles, look-ups and clock ticks of every task, added to found[task].
// Memory: 24 bytes per unit; 4 per place of the tables of the blocks that run at once. Shared: 8 bytes per thread of listed rows.
// Differs from the authors' code in: what trust.cu says. Theirs launches a kernel for every task, and sorts the vertices
//   of every partition by class on the host; here a launch goes through thousands of tasks, and rows are listed on chip.
//   The paper goes by the partial row of ij alone, and leaves out rows with fewer than two arcs; here one arc in ij and
//   one in ik may make a triangle, and a long row of ik makes a row large too, as buckets would be searched for long. A
//   table that is built for every arc is built by one team. A look-up reads an id of 4 bytes, 1.4e12 a second from L2 on
//   an H200, where shared memory answers 8.4e12.
#include "common/buckets.cuh"
#include "common/listed_rows.cuh"
#include "common/occupancy.cuh"
#include "common/second_hop.cuh"

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

// Units are taken from a counter, rows of a unit are listed by class. Shared: two offsets per thread, a count and cached
// ids per bucket; buckets are a power of two for each warp.
extern "C" __global__ void __launch_bounds__(MAX_THREADS, FULL_BLOCKS)
count_tasks(const u64* blocks, const u32* tasks, u32 shares, const u32* units, u32 count, u32* taken, u64* found,
            u32 most_middles, u32 most_ends, u32 chunk, u32 per_arc, u32 buckets, u32 cached, u32 capacity, u32* far,
            u32* copied, u32 lanes) {
    DYNAMIC_SHARED(offset_t, stops);
    __shared__ u64 warp_sums[MAX_WARPS];
    __shared__ u32 places[MAX_LISTED];
    __shared__ u32 lengths[3];
    const Listed listed = {places, lengths};
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
    for_each_task({blocks, tasks, shares, units, count, taken, found}, [&](Unit unit, const Task& task, Found* sums) {
        list_rows(task, unit, {most_middles, most_ends}, listed, [&](u32 large, u32 small) {
            for (u32 number = 0; number < large; ++number)
                count_row<BlockTeam>(task.blocks, large_row(listed, number), per_arc, table, rows, how, sums);
            for (u32 first = take_small(listed, chunk); first < small; first = take_small(listed, chunk))
                for (u32 number = first; number < small && number - first < chunk; ++number)
                    count_row<WarpTeam>(task.blocks, small_row(listed, number), per_arc, part_of_warp(table),
                                        part_of_warp(rows), how, sums);
        });
    });
}
