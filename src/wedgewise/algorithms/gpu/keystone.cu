// What: pivots on the middle vertex b of a triangle a < b < c. Hubs are the highest ids; most c are hubs. Tables in
//   shared memory say which hubs c the pivots reach; the ids of a's row behind a pivot are streamed and looked up.
// Paper: ours.
// Who does what:
//     near     b among the nearest hubs: a block holds the table of 32 pivots, a word per near hub with a bit per pivot.
//              A tail a is streamed once for all of the 32 that it has: popcount(table[c] & a's pivots) triangles.
//     far      b below: a small block holds the bitmap of one pivot and streams the tails of its in-arcs.
//     search   what has no table (b with little work, or c below the hubs): 8 threads per arc a -> b look the ids of the
//              shorter list up in the longer one.
//   A few threads stream a tail together, 8 ids in one load. Words are added up bit by bit in carry-save form, so that
//   one population count does for 8 look-ups.
// Input: ids by rank; ids of hubs as 16-bit numbers from the first hub, rows padded to loads of 8 with the number of
//   hubs, an id that no pivot reaches.
// Output: triangles and tests, added to found[0] and found[1].
// Memory: see keystone.py. In shared memory 4 bytes per near hub, or a bit per hub.
// Differs from the authors' code in: nothing, there is no other.
#include "common/keystone.cuh"
#include "common/keystone_stream.cuh"
#include "common/reduce.cuh"
#include "common/search.cuh"

#define SEARCH_LANES 8u
#define FAR_LANES 4u
#ifndef BLOCK
#define BLOCK 1024
#endif
#ifndef FAR_BLOCK
#define FAR_BLOCK 64
#endif

__device__ __forceinline__ u32 look_up_bits(uint4 ids, const u32* bitmap) {
    const u32 pairs[4] = {ids.x, ids.y, ids.z, ids.w};
    u32 found = 0;
    for (u32 k = 0; k < 4; ++k) {
        const u32 low = pairs[k] & 0xFFFFu, high = pairs[k] >> 16;
        found += (bitmap[low / 32] >> low % 32 & 1u) + (bitmap[high / 32] >> high % 32 & 1u);
    }
    return found;
}

// Two loads at a time.
__device__ __forceinline__ u32 stream_bits(const uint4* ids, uint4 item, const u32* bitmap) {
    u32 load = item.x + threadIdx.x % FAR_LANES, found = 0;
    for (; load + FAR_LANES < item.y; load += 2 * FAR_LANES) {
        const uint4 eight = ids[load], next_eight = ids[load + FAR_LANES];
        found += look_up_bits(eight, bitmap) + look_up_bits(next_eight, bitmap);
    }
    return load < item.y ? found + look_up_bits(ids[load], bitmap) : found;
}

// Calls change(id) for the hubs of a row; `lanes` threads that are numbered by `lane` take part, `hub_count` pads rows.
template <typename Change>
__device__ __forceinline__ void for_each_hub(const uint4* ids, u32 begin, u32 end, u32 lane, u32 lanes, u32 hub_count, Change change) {
    for (u32 load = begin + lane; load < end; load += lanes) {
        const uint4 eight = ids[load];
        const u32 pairs[4] = {eight.x, eight.y, eight.z, eight.w};
        for (u32 pair : pairs) {
            if ((pair & 0xFFFFu) < hub_count) change(pair & 0xFFFFu);
            if (pair >> 16 < hub_count) change(pair >> 16);
        }
    }
}

__device__ __forceinline__ u64 search(const u32* heads, const Search* searches, u32 count, u64* tests) {
    const u32 lane = threadIdx.x % SEARCH_LANES;
    u64 triangles = 0;
    for (u32 at = (blockIdx.x * blockDim.x + threadIdx.x) / SEARCH_LANES; at < count;
         at += gridDim.x * blockDim.x / SEARCH_LANES) {
        const Search task = searches[at];
        for (offset_t key = task.keys_begin + lane; key < task.keys_end; key += SEARCH_LANES) {
            const u32 wanted = heads[key];
            const offset_t place = first_not_below(heads, task.list_begin, task.list_end, wanted);
            triangles += place < task.list_end && heads[place] == wanted;
            *tests += 1;
        }
    }
    return triangles;
}

// All threads search; block i then takes the items [cuts[i], cuts[i + 1]), which are in the order of their owners.
extern "C" __global__ void __launch_bounds__(BLOCK)
    count_near(const u32* heads, u32 n, u32 hub_count, const u32* hub_start, const uint4* ids, const uint4* items,
               const u32* units, const u32* owner_ends, const u32* cuts, const offset_t* searches, u32 search_count,
               u64* found) {
    DYNAMIC_SHARED(u32, table);
    const u32 first_hub = n - hub_count;
    u32 at = cuts[blockIdx.x], zeros = 0;  // the words of the table below `zeros` are zero
    const u32 stop = cuts[blockIdx.x + 1];
    u64 tests = 0;
    u64 triangles = search(heads, reinterpret_cast<const Search*>(searches), search_count, &tests);
    while (at < stop) {
        const u32 owner = items[at].w, next = min(owner_ends[owner], stop);
        const u32 first_word = (units[owner] - first_hub) * NEAR_PIVOTS;
        __syncthreads();  // nobody reads the last group's table any more
        for (u32 word = zeros + threadIdx.x; word <= hub_count; word += blockDim.x) table[word] = 0;
        zeros = first_word;
        __syncthreads();
        for (u32 k = threadIdx.x / WARP; k < NEAR_PIVOTS && first_word + k < hub_count; k += blockDim.x / WARP) {
            const u32* starts = hub_start + (first_hub + first_word + k);
            for_each_hub(ids, starts[0], starts[1], threadIdx.x % WARP, WARP, hub_count,
                         [&](u32 hub) { atomicOr(table + hub, 1u << k); });
        }
        __syncthreads();
        triangles += stream_all(ids, items, at, next, table, &tests);
        at = next;
    }
    add_found(found, triangles);
    add_found(found + 1, tests);
}

// Blocks take the owners from end_owner − 1 down to first_owner: those with most work, the highest ids, come first.
extern "C" __global__ void __launch_bounds__(FAR_BLOCK)
    count_far(u32 hub_count, const u32* hub_start, const uint4* ids, const uint4* items, const u32* units,
              const u32* owner_ends, u32 first_owner, u32 end_owner, u64* found) {
    DYNAMIC_SHARED(u32, bitmap);
    for (u32 word = threadIdx.x; word <= hub_count / 32; word += blockDim.x) bitmap[word] = 0;
    __syncthreads();
    u64 triangles = 0, tests = 0;
    for (u32 done = blockIdx.x; done < end_owner - first_owner; done += gridDim.x) {
        const u32 owner = end_owner - 1 - done, begin = hub_start[units[owner]], end = hub_start[units[owner] + 1];
        for_each_hub(ids, begin, end, threadIdx.x, blockDim.x, hub_count,
                     [&](u32 hub) { atomicOr(bitmap + hub / 32, 1u << hub % 32); });
        __syncthreads();
        const u32 first = owner == 0 ? 0 : owner_ends[owner - 1], last = owner_ends[owner];
        u32 at = first + threadIdx.x / FAR_LANES;
        uint4 item = at < last ? items[at] : make_uint4(0, 0, 0, 0);
        while (at < last) {
            at += blockDim.x / FAR_LANES;
            const uint4 following = at < last ? items[at] : make_uint4(0, 0, 0, 0);  // under way while this one is streamed
            triangles += stream_bits(ids, item, bitmap);
            if (threadIdx.x % FAR_LANES == 0) tests += u64(item.y - item.x) * IDS_PER_LOAD;
            item = following;
        }
        __syncthreads();  // nobody reads the bitmap any more
        for_each_hub(ids, begin, end, threadIdx.x, blockDim.x, hub_count,
                     [&](u32 hub) { STORE_EQUAL(bitmap + hub / 32, 0u); });  // hubs may share a word
        __syncthreads();
    }
    add_found(found, triangles);
    add_found(found + 1, tests);
}
