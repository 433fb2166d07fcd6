#include "common/types.cuh"

// The sum over the lanes of a full warp, in every lane.
__device__ __forceinline__ u64 warp_sum(u64 value) {
    for (u32 distance = WARP / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(ALL_LANES, value, distance);
    return value;
}

// Adds what every thread of the block found; all threads of each warp must come here.
__device__ __forceinline__ void add_found(u64* total, u64 found) {
    found = warp_sum(found);
    if (threadIdx.x % WARP == 0 && found > 0) atomicAdd(total, found);
}
