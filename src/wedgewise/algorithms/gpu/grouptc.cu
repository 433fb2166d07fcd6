// What: GroupTC. For an arc u -> v the ids of one list, the keys, are searched for in another, the table. The lists are
//   N+(u) behind v and N+(v); a block takes the keys of many consecutive arcs as one list and shares it out evenly.
// Paper: J. Li, Z. Xu, M. Pham, Y. Tu, Q. Zhou, "A Comparative Study of Intersection-Based Triangle Counting Algorithms
//   on GPUs", IEEE IPDPS 2024, section V.
// Who does what: a block per chunk of consecutive arcs. Its threads describe the arcs in shared memory; then every warp
//   takes an equal stretch of the chunk's keys, 32 at a time, one per lane. A lane that stays with an arc resumes its
//   search where the last one ended. The table is N+(u) behind v, or N+(v) where that is more than swap_factor times as
//   long.
// Input: ids by rank, so that v's place in N+(u) is where the ids behind it begin. tails[arc] is u.
// Output: triangles and keys searched for, added to found[0] and found[1].
// Memory: 4 bytes per arc of tails, 16 per chunk where one launch is not enough. Shared: 32 bytes per arc of a chunk,
//   and cached ids of 4 bytes.
// Differs from the authors' code in: tables among the chunk's own ids are read from shared memory; arcs with nothing to
//   search for take no place; a warp's keys are contiguous, so that lanes step over few arcs. Good on graphs of any
//   size, as every thread has the same number of keys; where rows are long, look-ups in a hash table take fewer steps.
#include "common/block_or_warp.cuh"
#include "common/block_sum.cuh"
#include "common/lists.cuh"
#include "common/occupancy.cuh"
#include "common/reduce.cuh"
#include "common/search.cuh"

#define COUNT_BITS 16u

// Keys [the stop before, stop) of the chunk are the ids heads[key + shift], modulo 2^64.
struct Search {
    u64 stop, shift;
    const u32* table;  // of shared or of global memory
    u32 table_length;
};

// Consecutive arcs [begin, end); ids[0, held) are heads[begin, begin + held), in shared memory.
struct Chunk {
    offset_t begin, end;
    u32* ids;
    u32 held;
};

// No keys if either list is empty.
__device__ __forceinline__ Intersection intersection_at(Arcs arcs, offset_t arc, u32 swap_factor) {
    const u32 u = arcs.tails[arc], v = arcs.heads[arc];
    const List behind = {arc + 1, u32(arcs.offsets[u + 1] - arc - 1)};
    const List row = row_list(arcs.offsets, v);
    return u64(swap_factor) * behind.length < row.length ? Intersection{behind, row} : Intersection{row, behind};
}

// Copies the chunk's ids and those up to the end of its last row, as many as there is room for.
__device__ __forceinline__ void hold_ids(Arcs arcs, Chunk* chunk, u32 room) {
    const offset_t row_end = arcs.offsets[arcs.tails[chunk->end - 1] + 1];
    chunk->held = u32(min(u64(row_end - chunk->begin), u64(room)));
    for (u32 at = threadIdx.x; at < chunk->held; at += blockDim.x) chunk->ids[at] = arcs.heads[chunk->begin + at];
}

__device__ __forceinline__ const u32* table_at(Arcs arcs, Chunk chunk, List table) {
    const bool is_held = table.begin >= chunk.begin && u64(table.begin - chunk.begin) + table.length <= chunk.held;
    return is_held ? chunk.ids + (table.begin - chunk.begin) : arcs.heads + table.begin;
}

// Writes a search for every arc with keys, in the order of the arcs; returns their number and that of all keys.
__device__ __forceinline__ u64 describe_searches(Arcs arcs, Chunk chunk, u32 swap_factor, Search* searches,
                                                 u64* warp_sums, u32* count) {
    u64 seen = 0;  // keys << COUNT_BITS | searches
    for (offset_t first = chunk.begin; first < chunk.end; first += blockDim.x) {
        const offset_t arc = first + threadIdx.x;
        Intersection lists = {};
        if (arc < chunk.end) lists = intersection_at(arcs, arc, swap_factor);
        const u64 keys = lists.keys.length;
        u64 total;
        const u64 before = seen + BlockTeam::sum_before(keys > 0 ? keys << COUNT_BITS | 1 : u64(0), warp_sums, &total);
        if (keys > 0) {
            const u64 keys_before = before >> COUNT_BITS;
            searches[before % (1u << COUNT_BITS)] = {keys_before + keys, lists.keys.begin - keys_before,
                                                     table_at(arcs, chunk, lists.table), lists.table.length};
        }
        seen += total;
        __syncthreads();  // the searches are written, and warp_sums is free again
    }
    *count = seen % (1u << COUNT_BITS);
    return seen >> COUNT_BITS;
}

__device__ __forceinline__ u32 search_of(const Search* searches, u32 count, u64 key) {
    u32 low = 0, high = count - 1;
    while (low < high) {
        const u32 middle = (low + high) / 2;
        if (searches[middle].stop <= key) low = middle + 1;
        else high = middle;
    }
    return low;
}

// How many of the keys [begin, end) this lane finds.
__device__ __forceinline__ u64 search_keys(const u32* heads, const Search* searches, u32 count, u64 begin, u64 end) {
    u64 key = begin + threadIdx.x % WARP, found = 0;
    if (key >= end) return 0;
    u32 at = search_of(searches, count, key), low = 0;
    Search search = searches[at];
    for (; key < end; key += WARP) {
        if (key >= search.stop) {
            while (key >= searches[at].stop) ++at;
            search = searches[at];
            low = 0;
        }
        const u32 wanted = heads[key + search.shift];
        low = first_not_below(search.table, low, search.table_length, wanted);  // keys ascend, so it never goes back
        found += low < search.table_length && search.table[low] == wanted;
    }
    return found;
}

// Block i takes the chunk first_chunk + i; m arcs in all.
extern "C" __global__ void __launch_bounds__(MAX_THREADS, FULL_BLOCKS)
count_chunks(const offset_t* offsets, const u32* heads, const u32* tails, u64 m, u32 chunk_arcs, u32 swap_factor,
             u32 cached, u64 first_chunk, u64* found) {
    DYNAMIC_SHARED(Search, searches);
    __shared__ u64 warp_sums[MAX_THREADS / WARP];
    const Arcs arcs = {offsets, heads, tails};
    const u64 begin = (first_chunk + blockIdx.x) * chunk_arcs;
    u32* const ids = reinterpret_cast<u32*>(searches + chunk_arcs);
    Chunk chunk = {offset_t(begin), offset_t(min(begin + chunk_arcs, m)), ids, 0};
    hold_ids(arcs, &chunk, cached);
    u32 count;
    const u64 keys = describe_searches(arcs, chunk, swap_factor, searches, warp_sums, &count);

    const u64 share = (keys + blockDim.x - 1) / blockDim.x * WARP;  // of a warp, in whole rounds of its lanes
    const u64 first = threadIdx.x / WARP * share;
    const u64 triangles = search_keys(heads, searches, count, first, min(first + share, keys));
    add_block_found(found, triangles, threadIdx.x == 0 ? keys : 0);
}

// Adds the keys of every chunk to its entry of work.
extern "C" __global__ void measure_chunks(const offset_t* offsets, const u32* heads, const u32* tails, u64 m,
                                          u32 chunk_arcs, u32 swap_factor, u64 chunks, u64* work) {
    const Arcs arcs = {offsets, heads, tails};
    for (u64 chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const u64 begin = chunk * chunk_arcs, end = min(begin + chunk_arcs, m);
        u64 keys = 0;
        for (u64 arc = begin + threadIdx.x; arc < end; arc += blockDim.x)
            keys += intersection_at(arcs, offset_t(arc), swap_factor).keys.length;
        add_found(work + chunk, keys);
    }
}
