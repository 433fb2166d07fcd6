#include "common/search.cuh"
#include "common/triples.cuh"

// Pivots are the rows b of block jk from first_pivot on, columns c near from first_column on: triangles with both are
// found by tables, the others by rows. Ids of row b below first_column end at far_ends[b - first_pivot], which is there
// where first_column > 0.
struct Near {
    u32 first_pivot, first_column;
    const offset_t* far_ends;
};

// Arcs [begin, end).
struct Arcs {
    offset_t begin, end;
};

__device__ __forceinline__ Arcs arcs_of(Block block, u32 a) { return {block.offsets[a], block.offsets[a + 1]}; }

// The arcs of a row to the heads from `first` on.
__device__ __forceinline__ Arcs near_part(Block block, u32 a, u32 first) {
    const Arcs row = arcs_of(block, a);
    return {first == 0 ? row.begin : first_not_below(block.heads, row.begin, row.end, first), row.end};
}
