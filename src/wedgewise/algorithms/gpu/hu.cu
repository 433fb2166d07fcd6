// What: looks every id two hops away from a vertex up among its heads, by binary search.
// Paper: L. Hu, N. Guan, L. Zou, "Triangle counting on GPU using fine-grained task distribution", ICDEW 2019, 225-232;
//   the walk is Algorithm 1 of Li et al., "A Comparative Study of Intersection-Based Triangle Counting Algorithms on
//   GPUs".
// Who does what: a block per vertex u. It places the first ids of N+(u) into shared memory; then every thread walks the
//   rows of u's heads, one behind the other, with a stride of the block's threads, and searches N+(u) for the id at
//   each of its stops. Neighbouring threads read neighbouring ids, and all have the same number of searches.
// Input: any oriented graph, rows ascending; the vertices with two arcs or more, by descending length of their rows,
//   and rows of more than part_arcs arcs in several parts.
// Output: triangles and ids searched for, added to found[0] and found[1].
// Memory: 8 bytes per part, 56 more per vertex while they are sorted. Shared: per cached id 12 bytes, or 20 where
//   offsets have 64 bits.
// Differs from the authors' code in: all threads of a block fill the cache instead of one; it also holds where the rows
//   of the heads lie, so that the walk stays in shared memory; of a row that is too long for it the first ids are
//   cached instead of none; a block has one vertex at a time, as in the paper, instead of a range of about equal work;
//   the longest rows come first, and very long ones go to several blocks. Good where rows are of even length and fit
//   the cache. A search takes log d(u) steps whatever it is for, and Kronecker graphs have two to three times as many
//   ids two hops away as wedges, so that hashes and bitmaps win where rows are long.
#include "common/block_sum.cuh"
#include "common/lists.cuh"
#include "common/occupancy.cuh"
#include "common/parts.cuh"
#include "common/search.cuh"

// N+(u): ids[0, held) are the first of its ids, in shared memory; rest[0, length - held) the others.
struct Row {
    const u32* ids;
    const u32* rest;
    u32 held, length;
};

// The rows of the heads of count arcs; lists[0, held) are the first of them, in shared memory.
struct TwoHops {
    const offset_t* offsets;
    const u32* heads;
    const List* lists;
    offset_t begin;
    u32 held, count;
};

__device__ __forceinline__ List list_at(const TwoHops& hops, u32 at) {
    return at < hops.held ? hops.lists[at] : row_list(hops.offsets, hops.heads[hops.begin + at]);
}

__device__ __forceinline__ bool is_head(const Row& row, u32 wanted) {
    if (row.held == row.length || (row.held > 0 && wanted <= row.ids[row.held - 1]))
        return is_member(row.ids, row.held, wanted);
    return is_member(row.rest, row.length - row.held, wanted);
}

// How many of this thread's ids among those two hops away are heads of u.
__device__ __forceinline__ u32 walk(const TwoHops& hops, const Row& row, u64* tests) {
    u32 at = 0, place = threadIdx.x, triangles = 0;  // place is counted from the begin of the list at `at`
    List list = list_at(hops, 0);
    while (true) {
        while (place >= list.length) {
            place -= list.length;
            if (++at == hops.count) return triangles;
            list = list_at(hops, at);
        }
        triangles += is_head(row, hops.heads[list.begin + place]);
        *tests += 1;
        place += blockDim.x;
    }
}

// Block i takes the parts begin + i, begin + i + blocks, … below end; it has room for `cached` ids and lists.
extern "C" __global__ void __launch_bounds__(MAX_THREADS, FULL_BLOCKS)
count_parts(const offset_t* offsets, const u32* heads, const u32* vertices, const u32* firsts, u32 part_arcs,
            u32 cached, u64 begin, u64 end, u64* found) {
    DYNAMIC_SHARED(List, lists);
    u32* const ids = reinterpret_cast<u32*>(lists + cached);
    u64 triangles = 0, tests = 0;
    for (u64 number = begin + blockIdx.x; number < end; number += gridDim.x) {
        const Part part = part_at({offsets, vertices, firsts, part_arcs}, number);
        const u32 length = u32(part.row_end - part.row_begin), count = u32(part.end - part.begin);
        const u32 ids_held = min(length, cached), lists_held = min(count, cached);
        for (u32 at = threadIdx.x; at < ids_held; at += blockDim.x) ids[at] = heads[part.row_begin + at];
        for (u32 at = threadIdx.x; at < lists_held; at += blockDim.x)
            lists[at] = row_list(offsets, heads[part.begin + at]);
        __syncthreads();  // the cache is filled
        const Row row = {ids, heads + part.row_begin + ids_held, ids_held, length};
        triangles += walk({offsets, heads, lists, part.begin, lists_held, count}, row, &tests);
        __syncthreads();  // nobody reads it any more
    }
    add_block_found(found, triangles, tests);
}
