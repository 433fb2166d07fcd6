// What: shows what every primitive returns, so that the emulation can be held to CUDA's definitions.
#include "common/grid.cuh"
#include "common/reduce.cuh"

extern "C" __global__ void show_warp(u32* words) {
    const u32 lane = threadIdx.x;
    words[lane] = __shfl_sync(ALL_LANES, lane, 7);
    words[32 + lane] = __shfl_down_sync(ALL_LANES, lane, 3);
    words[64 + lane] = __shfl_up_sync(ALL_LANES, lane, 3);
    words[96 + lane] = __shfl_xor_sync(ALL_LANES, lane, 5);
    words[128 + lane] = __shfl_sync(ALL_LANES, lane, 2, 8);
    words[160 + lane] = __ballot_sync(ALL_LANES, lane % 2 == 1);
    words[192 + lane] = __popc(lane) + __popcll(0xFFFFFFFF00000000ull);
    words[224 + lane] = __ffs(lane);
    const u32 half = lane < 16 ? 0x0000FFFFu : 0xFFFF0000u;
    u32 sum = lane;
    for (u32 distance = 8; distance > 0; distance /= 2) sum += __shfl_xor_sync(half, sum, distance);
    words[256 + lane] = sum;
}

// small: threads, bits of all lanes, the largest lane, whether one is odd, what is left of a count, the least number.
// large: sums beyond 32 bits, the largest and the least number.
extern "C" __global__ void show_atomics(const uint4* quads, u32 quads_count, u32* small, u64* large) {
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(small, 1u);
    atomicOr(small + 1, 1u << threadIdx.x % WARP);
    atomicMax(small + 2, threadIdx.x);
    if (__any_sync(ALL_LANES, at % 2 == 1)) atomicMax(small + 3, 1u);
    atomicSub(small + 4, 2u);
    atomicMin(small + 5, at + 3);
    if (at < quads_count) {
        const uint4 quad = __ldg(quads + at);
        atomicAdd(large, u64(quad.x + quad.y + quad.z + quad.w) << 32);
    }
    atomicMax(large + 1, (1ull << 40) + min(at, 63u));
    atomicMin(large + 2, (1ull << 40) + at);
}

// sums[i] becomes the sum of sums[0 … i]: in every round each thread adds what stands `distance` places before its own.
extern "C" __global__ void sum_in_rounds(u32* sums, u32* arrivals) {
    const u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    for (u32 distance = 1; distance < gridDim.x * blockDim.x; distance *= 2) {
        const u32 before = at < distance ? 0 : sums[at - distance];
        meet_grid(arrivals);
        sums[at] += before;
        meet_grid(arrivals);
    }
}

// Every block counts its own threads by each kind of meeting, between meetings of all blocks.
extern "C" __global__ void count_blocks_apart(u32* counts, u32* arrivals) {
    __shared__ u32 threads;
    DYNAMIC_SHARED(u32, warps);
    if (threadIdx.x == 0) threads = 0;
    meet_grid(arrivals);
    const u32 lanes = __popc(__ballot_sync(ALL_LANES, threadIdx.x < blockDim.x - blockIdx.x));
    if (threadIdx.x % WARP == 0) warps[threadIdx.x / WARP] = lanes;
    __syncthreads();
    if (threadIdx.x < blockDim.x / WARP) atomicAdd(&threads, warps[threadIdx.x]);
    meet_grid(arrivals);
    if (threadIdx.x == 0) counts[blockIdx.x] = threads;
}
