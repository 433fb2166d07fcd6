// What: lists the rows of a task that can begin triangles, large ones apart from the others.
// Paper: S. Pandey et al., "TRUST: Triangle counting reloaded on GPUs", IEEE TPDS 32(11), 2021, section 5.3: what a row
//   gets is decided anew for every task, by its partial degree.
// Who does what: one thread per row of the share; a block takes places for all of its rows at once.
// Input: offsets of the blocks ij and ik. Row r of the share is row share + r * shares of part i.
// Output: rows with arcs in both blocks. Those with more than most_middles in ij, or more than most_ends in ik, fill
//   places from the front, the others from the back; lengths[0] and lengths[1], zero before, count them.
// Memory: 4 bytes per row of the share.
// Differs from the authors' code in: theirs sorts the vertices of every partition by class, on the host. The paper goes
//   by the partial row of ij alone, and leaves out rows with fewer than two arcs; here one arc in ij and one in ik may
//   make a triangle.
#include "common/block_or_warp.cuh"

#define MOST_LISTING_WARPS 32u

__device__ __forceinline__ u32 degree(const offset_t* offsets, u32 row) { return u32(offsets[row + 1] - offsets[row]); }

extern "C" __global__ void list_rows(const offset_t* ij_offsets, const offset_t* ik_offsets, u32 share, u32 shares,
                                     u32 count, u32 most_middles, u32 most_ends, u32* places, u32* lengths) {
    __shared__ u64 warp_sums[MOST_LISTING_WARPS];
    __shared__ u32 large_before;
    __shared__ u32 small_before;
    for (u32 first = blockIdx.x * blockDim.x; first < count; first += gridDim.x * blockDim.x) {
        const u32 row = share + (first + threadIdx.x) * shares;
        const bool is_row = first + threadIdx.x < count;
        const u32 middles = is_row ? degree(ij_offsets, row) : 0, ends = is_row ? degree(ik_offsets, row) : 0;
        const bool is_listed = middles > 0 && ends > 0;
        const u64 is_large = is_listed && (middles > most_middles || ends > most_ends);
        const u64 is_small = is_listed && !is_large;
        u64 total;  // large << 32 | small
        const u64 before = BlockTeam::sum_before(is_large << 32 | is_small, warp_sums, &total);
        if (threadIdx.x == 0) {
            large_before = atomicAdd(lengths, u32(total >> 32));
            small_before = atomicAdd(lengths + 1, u32(total));
        }
        __syncthreads();  // the places of the block are known; they are read before the next sum's barrier
        if (is_large) places[large_before + u32(before >> 32)] = row;
        if (is_small) places[count - 1 - (small_before + u32(before))] = row;
    }
}
