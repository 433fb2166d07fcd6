#include "common/batch.cuh"
#include "common/search.cuh"

// Pivots are the rows b of block jk from task.first_pivot on, columns c near from task.first_column on: triangles with
// both are found by tables, the others by rows.

// The arcs of a row to the heads from `first` on.
__device__ __forceinline__ Arcs near_part(Block block, u32 a, u32 first) {
    const Arcs row = arcs_of(block, a);
    return {first == 0 ? row.begin : first_not_below(block.heads, row.begin, row.end, first), row.end};
}
