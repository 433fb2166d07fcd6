// What: writes the tail of every arc.
// Paper: none.
// Who does what: a warp per WARP_ARCS arcs, whose first and last it searches among all rows, the others between these.
// Input: the offsets of n rows. Output: tails[arc]. Memory: 4 bytes per arc.
#include "common/search.cuh"

#define WARP_ARCS 256u

extern "C" __global__ void write_tails(const offset_t* offsets, u32 n, u64 m, u32* tails) {
    const u32 lane = threadIdx.x % WARP;
    const u64 warp = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP, warps = u64(gridDim.x) * blockDim.x / WARP;
    for (u64 first = warp * WARP_ARCS; first < m; first += warps * WARP_ARCS) {
        const u64 last = min(first + WARP_ARCS, m) - 1;
        const u32 row = row_of(offsets, n, offset_t(lane == 0 ? first : last));
        const u32 low = __shfl_sync(ALL_LANES, row, 0), high = __shfl_sync(ALL_LANES, row, 1) + 1;
        for (u64 arc = first + lane; arc <= last; arc += WARP) tails[arc] = row_between(offsets, low, high, offset_t(arc));
    }
}
