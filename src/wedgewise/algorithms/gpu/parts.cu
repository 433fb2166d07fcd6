// What: measures parts of rows: how many ids the rows of a part's heads hold together.
// Paper: none.
// Who does what: a warp per part, a lane per arc.
// Input: an oriented graph and parts of its rows. Output: added to work[part]. Memory: 8 bytes per part.
#include "common/parts.cuh"
#include "common/reduce.cuh"

extern "C" __global__ void measure_parts(const offset_t* offsets, const u32* heads, const u32* vertices,
                                         const u32* firsts, u32 part_arcs, u64 parts, u64* work) {
    const u64 warps = u64(gridDim.x) * blockDim.x / WARP;
    for (u64 number = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP; number < parts; number += warps) {
        const Part part = part_at({offsets, vertices, firsts, part_arcs}, number);
        u64 ids = 0;
        for (offset_t arc = part.begin + threadIdx.x % WARP; arc < part.end; arc += WARP)
            ids += offsets[heads[arc] + 1] - offsets[heads[arc]];
        ids = warp_sum(ids);
        if (threadIdx.x % WARP == 0) work[number] += ids;
    }
}
