#include "common/reduce.cuh"

#define MAX_WARPS 32u

struct Found {
    u64 triangles, tests;
};

// The sums of both values over a full warp: that of the first in lanes 0 … 15, that of the second in lanes 16 … 31.
__device__ __forceinline__ u64 warp_sums(u64 first, u64 second) {
    const bool has_first = threadIdx.x % WARP < WARP / 2;
    u64 sum = (has_first ? first : second) + __shfl_xor_sync(ALL_LANES, has_first ? second : first, WARP / 2);
    for (u32 distance = WARP / 4; distance > 0; distance /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, distance);
    return sum;
}

// Adds what every thread of the block found to found[0] and found[1], with one atomic each; all threads must come here,
// and meet before they come again.
__device__ __forceinline__ void add_block_found(u64* found, u64 triangles, u64 tests) {
    __shared__ u64 sums[2 * MAX_WARPS];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u64 of_warp = warp_sums(triangles, tests);
    if (lane % (WARP / 2) == 0) sums[2 * warp + (lane > 0)] = of_warp;
    __syncthreads();  // every warp's sums are there
    if (warp > 0) return;
    const bool is_warp = lane < blockDim.x / WARP;
    const u64 of_block = warp_sums(is_warp ? sums[2 * lane] : 0, is_warp ? sums[2 * lane + 1] : 0);
    if (lane % (WARP / 2) == 0 && of_block > 0) atomicAdd(found + (lane > 0), of_block);
}
