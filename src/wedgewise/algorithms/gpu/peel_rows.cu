// What: writes the rows of all neighbours of an oriented graph, and finds the edges that are in any triangle.
// Paper: ours.
// Who does what: a thread per arc writes its two entries. LANES threads per edge look the last ids of its shorter row up in
//   the longer one until one is found, since hubs come last and are most likely to be common; what is found for one edge is
//   found for three. Edges that take long are left over to a block each.
// Input: ids by rank, rows ascending; places of arcs by head, then by tail, and where each head's begin.
// Output: rows, in-neighbours first: they are lower. flags[edge] is 1 for an edge in a triangle; zero before.
// Memory: 16 bytes of rows, a flag and 4 bytes for what is left over per edge.
// Differs from the authors' code in: nothing, there is no other.
#include "common/search.cuh"

#ifndef LANES
#define LANES 8u
#endif
#define GROUPS (WARP / LANES)

// Keys [begin, end) of the shorter row of an edge, to be looked up in [low, high).
struct Search {
    u32 begin, end, low, high;
};

extern "C" __global__ void write_rows(const u32* offsets, const u32* heads, const u32* tails, const u32* places,
                                      const u32* in_begins, u32 m, u32* neighbours, u32* edges) {
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < m; at += u64(gridDim.x) * blockDim.x) {
        const u32 in_arc = places[at], in_place = u32(at) + offsets[heads[in_arc]];
        const u32 out_place = u32(at) + in_begins[tails[at] + 1];
        neighbours[in_place] = tails[in_arc];
        edges[in_place] = in_arc;
        neighbours[out_place] = heads[at];
        edges[out_place] = u32(at);
    }
}

__device__ __forceinline__ Search search_for(const u32* begins, u32 u, u32 v) {
    const u32 u_begin = begins[u], u_end = begins[u + 1], v_begin = begins[v], v_end = begins[v + 1];
    if (u_end - u_begin < v_end - v_begin) return {u_begin, u_end, v_begin, v_end};
    return {v_begin, v_end, u_begin, u_end};
}

// Whether the key at a place closes a triangle; if so, the edges to it are flagged.
__device__ __forceinline__ bool closes(const u32* neighbours, const u32* edges, Search search, u32 place, u8* flags) {
    const u32 wanted = neighbours[place], found = first_not_below(neighbours, search.low, search.high, wanted);
    if (found == search.high || neighbours[found] != wanted) return false;
    store_racing(flags + edges[place], u8(1));
    store_racing(flags + edges[found], u8(1));
    return true;
}

// Edges [begin, end); left_count of all edges are written to left.
extern "C" __global__ void find_triangles(const u32* begins, const u32* neighbours, const u32* edges, const u32* tails,
                                          const u32* heads, u32 begin, u32 end, u32 most_steps, u8* flags, u32* left,
                                          u32* left_count) {
    const u32 lane = threadIdx.x % WARP % LANES, group = threadIdx.x % WARP / LANES;
    const u32 lanes = (ALL_LANES >> (WARP - LANES)) << group * LANES;
    const u64 groups = u64(gridDim.x) * blockDim.x / LANES;
    const u64 first_of_warp = begin + (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP * GROUPS;
    for (u64 first = first_of_warp; first < end; first += groups) {
        const u32 edge = u32(first) + group;
        bool looks = edge < end && load_racing(flags + edge) == 0;
        Search search = {0, 0, 0, 0};
        if (looks) search = search_for(begins, tails[edge], heads[edge]);
        for (u32 step = 0; __any_sync(ALL_LANES, looks); ++step) {
            const bool hit = looks && search.end - search.begin > lane &&
                             closes(neighbours, edges, search, search.end - 1 - lane, flags);
            const bool any = (__ballot_sync(ALL_LANES, hit) & lanes) != 0;
            if (any && lane == 0) store_racing(flags + edge, u8(1));
            looks = looks && !any && search.end - search.begin > LANES;
            if (looks) search.end -= LANES;
            if (looks && step == most_steps) {
                if (lane == 0) left[atomicAdd(left_count, 1u)] = edge;
                looks = false;
            }
        }
    }
}

extern "C" __global__ void find_left_over(const u32* begins, const u32* neighbours, const u32* edges, const u32* tails,
                                          const u32* heads, const u32* left, const u32* left_count, u8* flags) {
    __shared__ u32 is_found;
    for (u32 at = blockIdx.x; at < *left_count; at += gridDim.x) {
        const u32 edge = left[at];
        const Search search = search_for(begins, tails[edge], heads[edge]);
        if (threadIdx.x == 0) is_found = load_racing(flags + edge);
        __syncthreads();
        for (u32 end = search.end; end > search.begin && is_found == 0; end -= min(blockDim.x, end - search.begin)) {
            const bool hit = end - search.begin > threadIdx.x &&
                             closes(neighbours, edges, search, end - 1 - threadIdx.x, flags);
            __syncthreads();  // all have seen that nothing was found so far
            if (hit) STORE_EQUAL(&is_found, 1u);
            __syncthreads();
        }
        if (threadIdx.x == 0 && is_found != 0) store_racing(flags + edge, u8(1));
        __syncthreads();  // nobody reads is_found any more
    }
}
