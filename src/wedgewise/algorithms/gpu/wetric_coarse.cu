// What: the vertex- and edge-parallel programs that the wedge-parallel one is compared with.
// Paper: Spaan, Chen, Bader, Varbanescu: Wedge-Parallel Triangle Counting for GPUs (WeTriC), section 4 and figure 1.
// Who does what: a thread per vertex v goes through its arcs v -> w, or a thread per arc finds v first; then one by one
//     STYLE 0, outgoing   the ids u behind w in N+(v): does w have u?
//     STYLE 1, arrow      the ids u of N+(w): does v have u?
//     STYLE 2, mixed      the fewer of the two
//   A thread goes on with the vertex or arc that lies a whole grid further.
//     RETRIEVAL 0, search    v is searched among the offsets
//     RETRIEVAL 1, sources   v is read from a list
//     RETRIEVAL 2, pairs     v and w are read from a list
// Input: ids by rank, rows ascending, and the matrix of wetric.cu.
// Output: triangles and tests, added to found[0] and found[1].
// Memory: none beyond the matrix; a list takes 4 (sources) or 8 (pairs) bytes per arc.
// Differs from the authors' code in (as far as the paper describes it): long rows may be cut over several launches.
#include "common/search.cuh"
#include "common/wetric.cuh"

#define ARROW 1
#define MIXED 2
#define SOURCES 1
#define PAIRS 2
#ifndef STYLE
#define STYLE 0
#endif
#ifndef RETRIEVAL
#define RETRIEVAL 0
#endif
#ifndef BLOCK
#define BLOCK 256
#endif

struct Tally {
    u64 closed, tests;
};

// Counts the triangles of the arc v -> w at position `at`; `end` is behind N+(v).
__device__ __forceinline__ void count_arc(const Graph& graph, u32 v, u32 w, u64 at, u64 end, Tally& tally) {
    const u64 behind = end - at - 1, row_begin = graph.offsets[w], degree = graph.offsets[w + 1] - row_begin;
    const bool arrow = STYLE == ARROW || (STYLE == MIXED && degree < behind);
    const u32* leaves = graph.ids + (arrow ? row_begin : at + 1);
    const u32 row = arrow ? v : w, count = u32(arrow ? degree : behind);
    u32 closed = 0;
    if (row >= graph.first_dense)
        for (u32 k = 0; k < count; ++k) closed += look_up(graph, row, leaves[k]);
    else
        for (u32 k = 0; k < count; ++k) closed += search(graph, row, leaves[k]);
    tally.closed += closed;
    tally.tests += count;
}

// The vertices [begin, end), of each the arcs that are number first_arc … last_arc - 1 of its row.
extern "C" __global__ void __launch_bounds__(BLOCK)
count_by_vertex(const offset_t* offsets, const u32* ids, const u32* matrix, u32 n, u32 first_dense, u32 begin, u32 end,
                u32 first_arc, u32 last_arc, u64* found) {
    const Graph graph = {offsets, ids, matrix, n, first_dense};
    Tally tally = {0, 0};
    for (u64 v = begin + u64(blockIdx.x) * blockDim.x + threadIdx.x; v < end; v += u64(gridDim.x) * blockDim.x) {
        const u64 row_begin = offsets[v], row_end = offsets[v + 1], stop = min(row_end, row_begin + last_arc);
        for (u64 at = row_begin + first_arc; at < stop; ++at) count_arc(graph, u32(v), ids[at], at, row_end, tally);
    }
    add_found(found, tally.closed);
    add_found(found + 1, tally.tests);
}

// The arcs [begin, end).
extern "C" __global__ void __launch_bounds__(BLOCK)
count_by_edge(const offset_t* offsets, const u32* ids, const u32* matrix, u32 n, u32 first_dense,
              const u32* listed, u64 begin, u64 end, u64* found) {
    const Graph graph = {offsets, ids, matrix, n, first_dense};
    Tally tally = {0, 0};
    for (u64 at = begin + u64(blockIdx.x) * blockDim.x + threadIdx.x; at < end; at += u64(gridDim.x) * blockDim.x) {
#if RETRIEVAL == PAIRS
        const uint2 pair = reinterpret_cast<const uint2*>(listed)[at];
        const u32 v = pair.x, w = pair.y;
#elif RETRIEVAL == SOURCES
        const u32 v = listed[at], w = ids[at];
#else
        const u32 v = row_of(offsets, n, offset_t(at)), w = ids[at];
#endif
        count_arc(graph, v, w, at, offsets[v + 1], tally);
    }
    add_found(found, tally.closed);
    add_found(found + 1, tally.tests);
}

// Writes the list of all m arcs.
extern "C" __global__ void list_arcs(const offset_t* offsets, const u32* ids, u32 n, u64 m, u32* listed) {
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < m; at += u64(gridDim.x) * blockDim.x) {
        const u32 v = row_of(offsets, n, offset_t(at));
#if RETRIEVAL == PAIRS
        reinterpret_cast<uint2*>(listed)[at] = make_uint2(v, ids[at]);
#else
        listed[at] = v;
#endif
    }
}
