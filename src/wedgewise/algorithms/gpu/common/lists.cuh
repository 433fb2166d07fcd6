#include "common/types.cuh"

// Arcs tails[arc] -> heads[arc]; row u has the arcs [offsets[u], offsets[u + 1]).
struct Arcs {
    const offset_t* offsets;
    const u32* heads;
    const u32* tails;
};

// The ids heads[begin, begin + length).
struct List {
    offset_t begin;
    u32 length;
};

// Every key is looked up in the table.
struct Intersection {
    List keys, table;
};

__device__ __forceinline__ List row_list(const offset_t* offsets, u32 vertex) {
    return {offsets[vertex], u32(offsets[vertex + 1] - offsets[vertex])};
}
