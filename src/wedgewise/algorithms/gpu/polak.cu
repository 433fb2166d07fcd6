// What: merges the sorted rows of both ends of every arc.
// Paper: A. Polak, "Counting triangles in large graphs on GPU", IPDPSW 2016, 740-746.
// Who does what: one thread per arc u -> v walks N+(u) and N+(v) side by side until either ends.
// Input: any oriented graph, rows ascending; tails[arc] is u, so that no thread searches for its row.
// Output: triangles and steps of the merges, added to found[0] and found[1].
// Memory: 4 bytes per arc of tails.
// Differs from the authors' code in: arcs beside rows of the oriented graph instead of edges sorted on the device;
//   several launches; sums per warp instead of per thread. Good where rows are short, as nothing is built beforehand. A
//   warp waits for its longest merge, and neighbouring threads read far from each other.
#include "common/merge.cuh"
#include "common/reduce.cuh"

__device__ __forceinline__ Merged merge_rows(const offset_t* offsets, const u32* heads, u32 u, u32 v) {
    return merge_lists(heads, offsets[u], offsets[u + 1], heads, offsets[v], offsets[v + 1]);
}

// Arcs [begin, end), one thread each; threads behind the last one only take part in the sum.
extern "C" __global__ void count_arcs(const offset_t* offsets, const u32* heads, const u32* tails, u64 begin, u64 end,
                                      u64* found) {
    const u64 arc = begin + u64(blockIdx.x) * blockDim.x + threadIdx.x;
    Merged merged = {0, 0};
    if (arc < end) merged = merge_rows(offsets, heads, tails[arc], heads[arc]);
    add_found(found, merged.common);
    add_found(found + 1, merged.steps);
}
