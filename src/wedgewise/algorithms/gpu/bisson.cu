// What: marks the heads of a vertex in a bitmap, and looks the rows of those heads up in it.
// Paper: M. Bisson, M. Fatica, "High performance exact triangle counting on GPUs", IEEE TPDS 28(12), 2017, 3501-3510;
//   compaction is named in their "Update on static graph challenge on GPU", HPEC 2018, 1-8.
// Who does what: a team per vertex u: a block, a warp or a thread, by the average degree of the graph. Its threads set
//   the bits of N+(u); then each takes one head v after the other and looks all of N+(v) up; at last they clear the
//   words that they set.
// Input: any oriented graph. bits[arc] is the bit of the arc's head; compaction has bits for those vertices alone that
//   are heads. The vertices with two arcs or more, by descending length of their rows, and rows of more than part_arcs
//   arcs in several parts.
// Output: triangles and ids looked up, added to found[0] and found[1].
// Memory: a bit per vertex for every team that runs at once, in shared memory where enough of them fit; 8 bytes per
//   part, 56 more per vertex while they are sorted; 4 per arc for compaction.
// Differs from the authors' code in: theirs is not public. The program that comparisons run in its place has a warp per
//   vertex and searches rows of up to 256 ids instead of marking them; it copies them into room for 200, ends early on
//   Kronecker graphs, and takes no more than 13 million vertices. Here every row is marked; compaction, which the
//   comparison only names, leaves out the bits of vertices that are no heads; a team clears what it set instead of one
//   thread everything; warps too have bitmaps in shared memory; the longest rows come first, and very long ones go to
//   several teams. Good where rows are of even length and vertices few, so that bitmaps stay on chip. The row of a head
//   is read by one thread, so that a long one keeps the team waiting.
#include "common/block_or_warp.cuh"
#include "common/block_sum.cuh"
#include "common/occupancy.cuh"
#include "common/parts.cuh"

#ifndef SHARED_BITMAPS
#define SHARED_BITMAPS 0
#endif

// A thread on its own.
struct ThreadTeam {
    static __device__ __forceinline__ u32 size() { return 1; }
    static __device__ __forceinline__ u32 rank() { return 0; }
    static __device__ __forceinline__ u32 number() { return blockIdx.x * blockDim.x + threadIdx.x; }
    static __device__ __forceinline__ u32 count() { return gridDim.x * blockDim.x; }
    static __device__ __forceinline__ void meet() {}
};

struct Graph {
    const offset_t* offsets;
    const u32* heads;
    const u32* bits;
};

// The team's own bitmap, of so many words. All are clear before a vertex and behind it.
template <class Team>
__device__ __forceinline__ u32* bitmap_of(u32* bitmaps, u32 words) {
#if SHARED_BITMAPS
    DYNAMIC_SHARED(u32, shared_bitmaps);
    u32* const bitmap = shared_bitmaps + u64(threadIdx.x / Team::size()) * words;
    for (u32 word = Team::rank(); word < words; word += Team::size()) bitmap[word] = 0;
    Team::meet();  // it is clear
    return bitmap;
#else
    return bitmaps + u64(Team::number()) * words;
#endif
}

// One thread looks up the row of a head.
__device__ __forceinline__ u32 look_up_row(Graph graph, const u32* bitmap, u32 v, u64* tests) {
    const offset_t begin = graph.offsets[v], end = graph.offsets[v + 1];
    u32 hits = 0;
    for (offset_t arc = begin; arc < end; ++arc) {
        const u32 bit = graph.bits[arc];
        hits += bitmap[bit / 32] >> bit % 32 & 1;
    }
    *tests += end - begin;
    return hits;
}

template <class Team>
__device__ __forceinline__ void count_part(Graph graph, u32* bitmap, Part part, Found* found) {
    for (offset_t arc = part.row_begin + Team::rank(); arc < part.row_end; arc += Team::size())
        atomicOr(bitmap + graph.bits[arc] / 32, 1u << graph.bits[arc] % 32);
    Team::meet();  // the heads are marked
    for (offset_t arc = part.begin + Team::rank(); arc < part.end; arc += Team::size())
        found->triangles += look_up_row(graph, bitmap, graph.heads[arc], &found->tests);
    Team::meet();  // nobody reads the marks any more
    for (offset_t arc = part.row_begin + Team::rank(); arc < part.row_end; arc += Team::size())
        STORE_EQUAL(bitmap + graph.bits[arc] / 32, 0u);
    Team::meet();  // they are gone
}

// Team i takes the parts begin + i, begin + i + teams, … below end.
template <class Team>
__device__ __forceinline__ void count_parts(Graph graph, Parts parts, u32 words, u32* bitmaps, u64 begin, u64 end,
                                            u64* found) {
    u32* const bitmap = bitmap_of<Team>(bitmaps, words);
    Found sums = {0, 0};
    for (u64 number = begin + Team::number(); number < end; number += Team::count())
        count_part<Team>(graph, bitmap, part_at(parts, number), &sums);
    add_block_found(found, sums.triangles, sums.tests);
}

extern "C" __global__ void __launch_bounds__(MAX_THREADS)
count_by_block(const offset_t* offsets, const u32* heads, const u32* bits, const u32* vertices, const u32* firsts,
               u32 part_arcs, u32 words, u32* bitmaps, u64 begin, u64 end, u64* found) {
    count_parts<BlockTeam>({offsets, heads, bits}, {offsets, vertices, firsts, part_arcs}, words, bitmaps, begin, end,
                           found);
}

extern "C" __global__ void __launch_bounds__(MAX_THREADS)
count_by_warp(const offset_t* offsets, const u32* heads, const u32* bits, const u32* vertices, const u32* firsts,
              u32 part_arcs, u32 words, u32* bitmaps, u64 begin, u64 end, u64* found) {
    count_parts<WarpTeam>({offsets, heads, bits}, {offsets, vertices, firsts, part_arcs}, words, bitmaps, begin, end,
                          found);
}

extern "C" __global__ void __launch_bounds__(MAX_THREADS)
count_by_thread(const offset_t* offsets, const u32* heads, const u32* bits, const u32* vertices, const u32* firsts,
                u32 part_arcs, u32 words, u32* bitmaps, u64 begin, u64 end, u64* found) {
    count_parts<ThreadTeam>({offsets, heads, bits}, {offsets, vertices, firsts, part_arcs}, words, bitmaps, begin, end,
                            found);
}
