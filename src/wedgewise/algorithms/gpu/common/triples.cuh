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

// Rows listed by class: the large ones are places[0, lengths[0]), the others the last lengths[1] of count places. Of
// several launches, each takes every launches-th row of a class, from its own number on.
struct Listed {
    const u32* places;
    const u32* lengths;
    u32 count, launch, launches;
};

__device__ __forceinline__ u32 large_of_launch(Listed rows) {
    return (rows.lengths[0] + rows.launches - 1 - rows.launch) / rows.launches;
}

__device__ __forceinline__ u32 small_of_launch(Listed rows) {
    return (rows.lengths[1] + rows.launches - 1 - rows.launch) / rows.launches;
}

__device__ __forceinline__ u32 large_row(Listed rows, u32 number) {
    return rows.places[number * rows.launches + rows.launch];
}

__device__ __forceinline__ u32 small_row(Listed rows, u32 number) {
    return rows.places[rows.count - 1 - (number * rows.launches + rows.launch)];
}
