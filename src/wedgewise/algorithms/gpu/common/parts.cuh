#include "common/types.cuh"

// A vertex with some of its arcs: row [row_begin, row_end) and arcs [begin, end) of it.
struct Part {
    offset_t row_begin, row_end, begin, end;
};

// Part i has the arcs of vertices[i] from place firsts[i] of the row on, part_arcs of them or what is left.
struct Parts {
    const offset_t* offsets;
    const u32* vertices;
    const u32* firsts;
    u32 part_arcs;
};

__device__ __forceinline__ Part part_at(Parts parts, u64 number) {
    const u32 u = parts.vertices[number];
    const offset_t row_begin = parts.offsets[u], row_end = parts.offsets[u + 1];
    const offset_t begin = row_begin + parts.firsts[number];
    return {row_begin, row_end, begin, row_end - begin < parts.part_arcs ? row_end : begin + parts.part_arcs};
}
