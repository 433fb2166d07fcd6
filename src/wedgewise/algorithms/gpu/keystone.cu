// What: pivots on the middle vertex b of a triangle a < b < c. Hubs are the highest ids; most c are hubs. Tables in
//   shared memory say which hubs c the pivots reach; the ids of a's row behind a pivot are streamed and looked up.
// Paper: ours.
// Who does what:
//     near     b a hub: a block holds the table of 32 pivots, a word per hub with a bit per pivot. A tail a is streamed
//              once for all of the 32 that it has: popcount(table[c] & a's pivots) triangles in one look-up.
//     far      b below: a warp holds the bitmap of one pivot and streams the tails of its in-arcs.
//     search   what has no table (b with little work, or c below the far hubs): 8 threads per arc a -> b look the ids of
//              the shorter list up in the longer one.
//   A few threads stream a tail together, 8 ids in one load.
// Input: ids by rank; ids of hubs as 16-bit numbers from the first hub, rows padded to loads of 8 with the number of
//   hubs, an id that no pivot reaches.
// Output: triangles and tests, added to found[0] and found[1].
// Memory: beyond the oriented graph, per arc 4 bytes of tails, at most 4 of 16-bit ids, 16 of items and 16 of searches,
//   as much again while items are sorted; per vertex 40. In shared memory 4 bytes per near hub, a bit per far hub and warp.
// Differs from the authors' code in: nothing, there is no other.
#include "common/reduce.cuh"

#define IDS_PER_LOAD 8u
#define NEAR_PIVOTS 32u
#define SEARCH_LANES 8u
#define FAR_LANES 4u
#ifndef LANES
#define LANES 2u
#endif
#ifndef BLOCK
#define BLOCK 1024
#endif

// A near item is a uint4: x, y the loads [x, y) from the group's first pivot in a's row to its end; z the pivots, bit k
// for the k-th of the group; w the group. A far item is a uint2: its loads.

struct Rows {
    const offset_t* offsets;
    const u32* heads;
};

__device__ __forceinline__ u32 look_up_words(uint4 ids, const u32* table, u32 pivots) {
    const u32 pairs[4] = {ids.x, ids.y, ids.z, ids.w};
    u32 found = 0;
    for (u32 k = 0; k < 4; ++k)
        found += __popc(table[pairs[k] & 0xFFFFu] & pivots) + __popc(table[pairs[k] >> 16] & pivots);
    return found;
}

__device__ __forceinline__ u32 look_up_bits(uint4 ids, const u32* bitmap) {
    const u32 pairs[4] = {ids.x, ids.y, ids.z, ids.w};
    u32 found = 0;
    for (u32 k = 0; k < 4; ++k) {
        const u32 low = pairs[k] & 0xFFFFu, high = pairs[k] >> 16;
        found += (bitmap[low / 32] >> low % 32 & 1u) + (bitmap[high / 32] >> high % 32 & 1u);
    }
    return found;
}

__device__ __forceinline__ void enter_group(Rows rows, u32 first_pivot, u32 n, u32 first_hub, u32* table) {
    for (u32 k = threadIdx.x / WARP; k < NEAR_PIVOTS && first_pivot + k < n; k += blockDim.x / WARP) {
        const offset_t end = rows.offsets[first_pivot + k + 1];
        for (offset_t arc = rows.offsets[first_pivot + k] + threadIdx.x % WARP; arc < end; arc += WARP)
            atomicOr(table + (rows.heads[arc] - first_hub), 1u << k);
    }
}

// A task is a uint4: the keys [x, y) and the list [z, w) that they are looked up in, as places among the arcs.
__device__ __forceinline__ u64 search(const u32* heads, const uint4* tasks, u32 task_count, u64* tests) {
    const u32 lane = threadIdx.x % SEARCH_LANES;
    u64 triangles = 0;
    for (u32 at = (blockIdx.x * blockDim.x + threadIdx.x) / SEARCH_LANES; at < task_count;
         at += gridDim.x * blockDim.x / SEARCH_LANES) {
        const uint4 task = tasks[at];
        for (u32 key = task.x + lane; key < task.y; key += SEARCH_LANES) {
            const u32 wanted = heads[key];
            const offset_t place = first_not_below(heads, task.z, task.w, wanted);
            triangles += place < task.w && heads[place] == wanted;
            *tests += 1;
        }
    }
    return triangles;
}

// All threads search; block i then takes the items [cuts[i], cuts[i + 1]), which are in the order of their groups.
extern "C" __global__ void __launch_bounds__(BLOCK)
    count_near(const offset_t* offsets, const u32* heads, u32 n, u32 hubs, const uint4* ids, const uint4* items,
               const u32* group_ends, const u32* cuts, const uint4* tasks, u32 task_count, u64* found) {
    DYNAMIC_SHARED(u32, table);
    const Rows rows = {offsets, heads};
    const u32 first_hub = n - hubs, lane = threadIdx.x % LANES;
    u32 at = cuts[blockIdx.x], clear_from = 0;
    const u32 stop = cuts[blockIdx.x + 1];
    u64 tests = 0;
    u64 triangles = search(heads, tasks, task_count, &tests);
    while (at < stop) {
        const u32 group = items[at].w, next = min(group_ends[group], stop);
        __syncthreads();  // nobody reads the last group's table any more
        for (u32 word = clear_from + threadIdx.x; word <= hubs; word += blockDim.x) table[word] = 0;
        clear_from = group * NEAR_PIVOTS;  // words below a group's pivots stay zero
        __syncthreads();
        enter_group(rows, first_hub + group * NEAR_PIVOTS, n, first_hub, table);
        __syncthreads();
        for (at += threadIdx.x / LANES; at < next; at += blockDim.x / LANES) {
            const uint4 item = items[at];
            u32 hits = 0;
            for (u32 load = item.x + lane; load < item.y; load += LANES) hits += look_up_words(ids[load], table, item.z);
            triangles += hits;
            if (lane == 0) tests += u64(item.y - item.x) * IDS_PER_LOAD;
        }
        at = next;
    }
    add_found(found, triangles);
    add_found(found + 1, tests);
}

template <bool ENTER>
__device__ __forceinline__ void change_bitmap(Rows rows, offset_t begin, offset_t end, u32 first_hub, u32* bitmap) {
    for (offset_t arc = begin + threadIdx.x % WARP; arc < end; arc += WARP) {
        const u32 hub = rows.heads[arc] - first_hub;
        if (ENTER) atomicOr(bitmap + hub / 32, 1u << hub % 32);
        else STORE_EQUAL(bitmap + hub / 32, 0u);  // lanes whose hubs share a word
    }
    __syncwarp();
}

// Warp i takes the pivots i, i + warps, …; the items of pivot b are [items_before[b], items_before[b + 1]).
extern "C" __global__ void __launch_bounds__(BLOCK)
    count_far(const offset_t* offsets, const u32* heads, u32 n, u32 hubs, const offset_t* hubs_begin, const uint4* ids,
              const u32* pivots, u32 pivot_count, const u32* items_before, const uint2* items, u64* found) {
    DYNAMIC_SHARED(u32, bitmaps);
    const Rows rows = {offsets, heads};
    const u32 words = hubs / 32 + 1, first_hub = n - hubs, warps = blockDim.x / WARP;
    u32* bitmap = bitmaps + threadIdx.x / WARP * words;
    for (u32 word = threadIdx.x % WARP; word < words; word += WARP) bitmap[word] = 0;
    __syncwarp();
    const u32 lane = threadIdx.x % FAR_LANES;
    u64 triangles = 0, tests = 0;
    for (u32 number = blockIdx.x * warps + threadIdx.x / WARP; number < pivot_count; number += gridDim.x * warps) {
        const u32 b = pivots[number], last = items_before[b + 1];
        const offset_t begin = hubs_begin[b], end = offsets[b + 1];
        change_bitmap<true>(rows, begin, end, first_hub, bitmap);
        for (u32 at = items_before[b] + threadIdx.x % WARP / FAR_LANES; at < last; at += WARP / FAR_LANES) {
            const uint2 item = items[at];
            u32 hits = 0;
            for (u32 load = item.x + lane; load < item.y; load += FAR_LANES) hits += look_up_bits(ids[load], bitmap);
            triangles += hits;
            if (lane == 0) tests += u64(item.y - item.x) * IDS_PER_LOAD;
        }
        __syncwarp();
        change_bitmap<false>(rows, begin, end, first_hub, bitmap);
    }
    add_found(found, triangles);
    add_found(found + 1, tests);
}
