// What: measures what the intersections of arcs cost, so that launches can be cut to equal work.
// Paper: none.
// Who does what: a warp per chunk of consecutive arcs, an arc per lane.
// Input: any oriented graph with the tail of every arc; m arcs in chunks of chunk_arcs.
// Output: work[chunk], the keys of searches (the shorter row of each arc) or the steps of merges (both rows), and
//   arc_cost for every arc. Memory: 8 bytes per chunk.
#include "common/reduce.cuh"

extern "C" __global__ void measure_arcs(const offset_t* offsets, const u32* heads, const u32* tails, u64 m,
                                        u32 chunk_arcs, u32 is_merged, u32 arc_cost, u64* work) {
    const u64 warps = u64(gridDim.x) * (blockDim.x / WARP), chunks = (m + chunk_arcs - 1) / chunk_arcs;
    for (u64 chunk = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP; chunk < chunks; chunk += warps) {
        const u64 begin = chunk * chunk_arcs, end = min(begin + chunk_arcs, m);
        u64 cost = 0;
        for (u64 arc = begin + threadIdx.x % WARP; arc < end; arc += WARP) {
            const u32 u = tails[arc], v = heads[arc];
            const u64 row = offsets[u + 1] - offsets[u], other = offsets[v + 1] - offsets[v];
            cost += arc_cost + (is_merged ? row + other : min(row, other));
        }
        cost = warp_sum(cost);
        if (threadIdx.x % WARP == 0) work[chunk] = cost;
    }
}
