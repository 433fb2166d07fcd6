#include "common/keystone.cuh"

#define FEW_LANES 2u
#define MANY_LANES 8u
#define ITEMS_AT_ONCE (WARP / FEW_LANES)
#ifndef LONG_ITEM
#define LONG_ITEM 8u
#endif

// A sum of words for each of their 32 bits, in binary: bit k has the weight 8 eights[k] + 4 fours[k] + ….
struct BitSums {
    u32 ones, twos, fours, eights;

    __device__ __forceinline__ static u32 add(u32& sum, u32 x, u32 y) {
        const u32 carry = (sum & x) | (sum & y) | (x & y);
        sum ^= x ^ y;
        return carry;
    }

    __device__ __forceinline__ void add(const u32 (&words)[8], u32 pivots) {
        const u32 twos_low = add(twos, add(ones, words[0], words[1]), add(ones, words[2], words[3]));
        const u32 twos_high = add(twos, add(ones, words[4], words[5]), add(ones, words[6], words[7]));
        eights += __popc(add(fours, twos_low, twos_high) & pivots);
    }

    __device__ __forceinline__ u32 total(u32 pivots) const {
        return 8 * eights + 4 * __popc(fours & pivots) + 2 * __popc(twos & pivots) + __popc(ones & pivots);
    }
};

template <u32 LANES>
__device__ __forceinline__ u32 stream(const uint4* ids, uint4 item, const u32* table) {
    BitSums sums = {0, 0, 0, 0};
    for (u32 load = item.x + threadIdx.x % LANES; load < item.y; load += LANES) {
        const uint4 eight = ids[load];
        const u32 words[8] = {table[eight.x & 0xFFFFu], table[eight.x >> 16], table[eight.y & 0xFFFFu], table[eight.y >> 16],
                              table[eight.z & 0xFFFFu], table[eight.z >> 16], table[eight.w & 0xFFFFu], table[eight.w >> 16]};
        sums.add(words, item.z);
    }
    return sums.total(item.z);
}

// The items [begin, end) with one table, a warp's worth at a time: long ones by many lanes each, whose loads are then
// neighbours in memory, short ones by few, which leaves no lane idle.
__device__ __forceinline__ u64 stream_all(const uint4* ids, const uint4* items, u32 begin, u32 end, const u32* table, u64* tests) {
    const u32 lane = threadIdx.x % WARP;
    u64 triangles = 0;
    for (u32 first = begin + threadIdx.x / WARP * ITEMS_AT_ONCE; first < end; first += blockDim.x / WARP * ITEMS_AT_ONCE) {
        const u32 few = first + lane / FEW_LANES, stop = min(first + ITEMS_AT_ONCE, end);
        const uint4 item = few < stop ? items[few] : make_uint4(0, 0, 0, 0);
        if (lane % FEW_LANES == 0) *tests += u64(item.y - item.x) * IDS_PER_LOAD;
        if (__any_sync(ALL_LANES, item.y - item.x >= LONG_ITEM)) {
            for (u32 many = first + lane / MANY_LANES; many < stop; many += WARP / MANY_LANES)
                triangles += stream<MANY_LANES>(ids, items[many], table);
        } else {
            triangles += stream<FEW_LANES>(ids, item, table);
        }
    }
    return triangles;
}
