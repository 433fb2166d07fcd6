#include "common/types.cuh"

// The sum over this lane and those before it.
template <class Sum>
__device__ __forceinline__ Sum warp_sum_up_to(Sum value) {
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        const Sum below = __shfl_up_sync(ALL_LANES, value, distance);
        if (threadIdx.x % WARP >= distance) value += below;
    }
    return value;
}

// Threads that work together: one warp of a block.
struct WarpTeam {
    static __device__ __forceinline__ u32 size() { return WARP; }
    static __device__ __forceinline__ u32 rank() { return threadIdx.x % WARP; }
    static __device__ __forceinline__ u32 first_thread() { return threadIdx.x / WARP * WARP; }
    static __device__ __forceinline__ u32 number() { return blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP; }
    static __device__ __forceinline__ u32 count() { return gridDim.x * (blockDim.x / WARP); }
    static __device__ __forceinline__ void meet() { __syncwarp(); }

    // The sum over the threads of the team before this one; *total that over all.
    template <class Sum>
    static __device__ __forceinline__ Sum sum_before(Sum value, u64*, Sum* total) {
        const Sum sum = warp_sum_up_to(value);
        *total = __shfl_sync(ALL_LANES, sum, WARP - 1);
        return sum - value;
    }
};

// Threads that work together: a whole block.
struct BlockTeam {
    static __device__ __forceinline__ u32 size() { return blockDim.x; }
    static __device__ __forceinline__ u32 rank() { return threadIdx.x; }
    static __device__ __forceinline__ u32 first_thread() { return 0; }
    static __device__ __forceinline__ u32 number() { return blockIdx.x; }
    static __device__ __forceinline__ u32 count() { return gridDim.x; }
    static __device__ __forceinline__ void meet() { __syncthreads(); }

    // As above; warp_sums are shared, one per warp, and free again after the team's next meeting.
    template <class Sum>
    static __device__ __forceinline__ Sum sum_before(Sum value, u64* warp_sums, Sum* total) {
        const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
        const Sum sum = warp_sum_up_to(value);
        if (lane == WARP - 1) warp_sums[warp] = sum;
        __syncthreads();  // every warp's sum is there
        const Sum warps_up_to = warp_sum_up_to(lane < blockDim.x / WARP ? Sum(warp_sums[lane]) : Sum(0));
        *total = __shfl_sync(ALL_LANES, warps_up_to, WARP - 1);
        const Sum warps_before = __shfl_sync(ALL_LANES, warps_up_to, (warp + WARP - 1) % WARP);
        return sum - value + (warp > 0 ? warps_before : Sum(0));
    }
};
