// What: writes the tail of every arc.
// Paper: none.
// Who does what: a thread per arc, which searches the row that holds it.
// Input: the offsets of n rows. Output: tails[arc]. Memory: 4 bytes per arc.
#include "common/search.cuh"

extern "C" __global__ void write_tails(const offset_t* offsets, u32 n, u64 m, u32* tails) {
    for (u64 arc = u64(blockIdx.x) * blockDim.x + threadIdx.x; arc < m; arc += u64(gridDim.x) * blockDim.x)
        tails[arc] = row_of(offsets, n, offset_t(arc));
}
