#include "common/types.cuh"

// Row a has the arcs [offsets[a], offsets[a + 1]) to heads; numbers are those within the parts of rows and heads.
struct Block {
    const offset_t* offsets;
    const u32* heads;
};

// The blocks of a task: arcs a -> b in ij, a -> c in ik, b -> c in jk.
struct Triple {
    Block ij, ik, jk;
};

// Arcs [begin, end).
struct Arcs {
    offset_t begin, end;
};

__device__ __forceinline__ Arcs arcs_of(Block block, u32 a) { return {block.offsets[a], block.offsets[a + 1]}; }
