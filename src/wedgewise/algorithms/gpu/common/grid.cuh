#include "common/types.cuh"

#ifndef EMULATED
#define ALL_ARRIVED 0x80000000u

// All threads of all blocks of a cooperative launch meet: what any of them wrote before, all of them read after, though
// not through __ldg or `const … __restrict__`, whose loads may be older. `arrivals` is zero before the launch, and
// nobody else's. The shares of the blocks add up to ALL_ARRIVED: when the last one comes, its bit turns over and the
// count below it is zero again, so that no number of meetings is too large.
__device__ __forceinline__ void meet_grid(u32* arrivals) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        const u32 share = blockIdx.x == 0 ? ALL_ARRIVED - (gridDim.x - 1) : 1;
        const u32 before = atomicAdd(arrivals, share);
        while (((*static_cast<volatile u32*>(arrivals) ^ before) & ALL_ARRIVED) == 0) {
        }
        __threadfence();
    }
    __syncthreads();
}
#endif
