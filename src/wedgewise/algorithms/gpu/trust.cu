// What: TRUST. For every vertex u a hash table of N+(u) is built once; then every id of the rows of its out-neighbours,
//   u's second hop, is looked up in it. Every hit is a triangle.
// Paper: S. Pandey et al., "TRUST: Triangle counting reloaded on GPUs", IEEE TPDS 32(11), 2021, 2646-2660, sections 3
//   and 4.
// Who does what: a block of 1,024 threads with 1,024 buckets for each vertex of more than 100 out-neighbours, a warp
//   with 32 buckets for each of 2 to 100. Chunks of vertices are taken from a counter; when there are none for
//   whole blocks any more, their warps go on. A bucket's first six places are in shared memory, those up to 128 in
//   global memory; a full bucket passes ids on to the next one, and a row longer than the table comes in pieces.
//   How the rows of the second hop are combined:
//     virtual  (0) they count as one list; prefix sums say which row a place is in
//     physical (1) they are copied behind each other first
//     apart    (2) each row gets 32, 16 or 8 lanes
// Input: any oriented graph, whatever its ids are. The vertices u by number, those of blocks first; where the table is
//   built for every arc u -> v, the tails u, and the arcs.
// Output: triangles and look-ups, added to found[0] and found[1]; by how many ids the fullest bucket was asked,
//   which is the paper's max collision: benchmarks/trust_collisions.py prints its table 3.
// Memory: 4 bytes per place of the tables of the blocks that run at once, 512 MB at most; 4 per vertex, 32 at the peak.
//   To copy rows, 256 per thread that runs. Tables for every arc: 44 bytes per arc at the peak. Shared: 36 per thread.
// Differs from the authors' code in: no id is ever dropped, however long a row or a bucket is, where theirs writes
//   behind the end of a bucket, and buckets hold 128, as in the paper, instead of 100; vertices are listed by class
//   instead of renamed for it; there are tables for the blocks that run at once, not for 1,024; a warp of a block takes
//   an equal and contiguous stretch of the second hop, so that its lanes step over few rows. A comparison of eight
//   found the authors' program the fastest on medium and large graphs, behind Polak's on small ones; on Kronecker 18,
//   by degree, the method looks up 3.2 times as many ids as there are wedges, and more on larger ones.
#include "common/block_sum.cuh"
#include "common/buckets.cuh"
#include "common/occupancy.cuh"
#include "common/second_hop.cuh"

#ifndef COMBINATION
#define COMBINATION 0
#endif

// Unit i is the row of owners[i] with its arcs; where per_arc, with the arc arcs[i] alone. They are taken in chunks.
struct Units {
    const u32* owners;
    const offset_t* arcs;
    u32 per_arc, chunk;
};

__device__ __forceinline__ Stretch arcs_of(Graph graph, Units units, offset_t unit) {
    const u32 owner = units.owners[unit];
    return units.per_arc ? Stretch{units.arcs[unit], units.arcs[unit] + 1}
                         : Stretch{graph.offsets[owner], graph.offsets[owner + 1]};
}

// Builds the table of a row, piece by piece if it is longer than the table, and looks up the second hop in each.
template <class Team, class How>
__device__ __forceinline__ void count_unit(Graph graph, const Buckets& table, Rows rows, How how, u32 owner,
                                           Stretch arcs, Found* found, u32* fullest) {
    const offset_t end = graph.offsets[owner + 1];
    u32 length;
    for (offset_t begin = graph.offsets[owner]; begin < end; begin += length) {
        length = u32(min(offset_t(table.count * table.capacity), offset_t(end - begin)));
        fill_table<Team>(table, graph.heads + begin, length);
        for (u32 bucket = Team::rank(); bucket < table.count; bucket += Team::size())
            *fullest = max(*fullest, table.asked[bucket]);
        look_up_rows<Team>(graph, table, rows, how, arcs, found);
    }
}

// Counts the units [begin, end).
template <class Team, class How>
__device__ __forceinline__ void take_units(Graph graph, Units units, offset_t begin, offset_t end, const Buckets& table,
                                           Rows rows, How how, u32* counter, u32* turns, Found* found, u32* fullest) {
    take_chunks<Team>(begin, end, units.chunk, counter, turns, [&](offset_t unit) {
        count_unit<Team>(graph, table, rows, how, units.owners[unit], arcs_of(graph, units, unit), found, fullest);
    });
}

__device__ __forceinline__ u32 warp_max(u32 value) {
    for (u32 distance = WARP / 2; distance > 0; distance /= 2)
        value = max(value, __shfl_xor_sync(ALL_LANES, value, distance));
    return value;
}

// Units [begin, middle) are for blocks, [middle, end) for warps. Shared: two offsets per thread, a count and cached ids
// per bucket; buckets are a power of two for each warp of the block.
extern "C" __global__ void __launch_bounds__(MAX_THREADS, FULL_BLOCKS)
count_units(const offset_t* offsets, const u32* heads, const u32* owners, const offset_t* arcs, u32 per_arc, u32 chunk,
            u32 buckets, u32 cached, u32 capacity, u32* far, u32* copied, u32 lanes, offset_t begin, offset_t middle,
            offset_t end, u32* counters, u64* found, u32* fullest) {
    DYNAMIC_SHARED(offset_t, stops);
    __shared__ u64 warp_sums[MAX_WARPS];
    __shared__ u32 turns[2 * MAX_WARPS];
    __shared__ u32 fullest_of_block;
    const Graph graph = {offsets, heads, heads};
    const Units units = {owners, arcs, per_arc, chunk};
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
    if (threadIdx.x == 0) fullest_of_block = 0;
    Found of_thread = {0, 0};
    u32 fullest_of_thread = 0;
    take_units<BlockTeam>(graph, units, begin, middle, table, rows, how, counters, turns, &of_thread,
                          &fullest_of_thread);
    __syncthreads();  // all have read the last turn; fullest_of_block is cleared
    take_units<WarpTeam>(graph, units, middle, end, part_of_warp(table), part_of_warp(rows), how, counters + 1,
                         turns + threadIdx.x / WARP, &of_thread, &fullest_of_thread);
    const u32 fullest_of_warp = warp_max(fullest_of_thread);
    if (threadIdx.x % WARP == 0) atomicMax(&fullest_of_block, fullest_of_warp);
    add_block_found(found, of_thread.triangles, of_thread.tests);
    if (threadIdx.x > 0) return;
    atomicMax(fullest, fullest_of_block);
    if (atomicAdd(counters + 2, 1u) < gridDim.x - 1) return;
    for (u32 counter = 0; counter < 3; ++counter) atomicExch(counters + counter, 0u);  // for the next launch
}

// Adds the look-ups of every unit to its entry of work; a warp each.
extern "C" __global__ void measure_units(const offset_t* offsets, const u32* heads, const u32* owners,
                                         const offset_t* arcs, u32 per_arc, offset_t count, u64* work) {
    const Graph graph = {offsets, heads, heads};
    const Units units = {owners, arcs, per_arc, 1};
    for (offset_t unit = WarpTeam::number(); unit < count; unit += WarpTeam::count()) {
        const Stretch of_unit = arcs_of(graph, units, unit);
        u64 look_ups = 0;
        for (offset_t arc = of_unit.begin + WarpTeam::rank(); arc < of_unit.end; arc += WARP) {
            const Stretch row = row_at(graph, arc);
            look_ups += row.end - row.begin;
        }
        add_found(work + unit, look_ups);
    }
}
