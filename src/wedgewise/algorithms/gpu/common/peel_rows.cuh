#include "common/block_or_warp.cuh"
#include "common/peel_state.cuh"

#define ROW_LANES 8u  // threads that pack a short row together

// Moves the entries of edges that live in a round to the front of their row, in order. A warp comes with as many rows as
// it has groups of ROW_LANES; those of v = n and above are empty.
__device__ __forceinline__ void pack_short_rows(const Rows& rows, const Edges& edges, u32 round, u32 v, u32 end) {
    const u32 lane = threadIdx.x % ROW_LANES, group = threadIdx.x % WARP / ROW_LANES;
    const u32 below = ((1u << lane) - 1) << group * ROW_LANES, lanes = ((1u << ROW_LANES) - 1) << group * ROW_LANES;
    const u32 begin = v < end ? rows.begins[v] : 0, stop = v < end ? rows.stops[v] : 0;
    u32 place = begin;
    for (u32 first = begin; __any_sync(ALL_LANES, first < stop); first += min(ROW_LANES, stop - first)) {
        const u32 at = first + lane;  // may wrap behind the end of the last row
        const bool is_in = lane < stop - first;
        const u32 edge = is_in ? rows.edges[at] : 0, neighbour = is_in ? rows.neighbours[at] : 0;
        const bool stays = is_in && edges.when[edge] >= round;
        const u32 all = __ballot_sync(ALL_LANES, stays);
        __syncwarp();  // all lanes have read what others write over
        if (stays) {
            const u32 to = place + __popc(all & below);
            rows.edges[to] = edge;
            rows.neighbours[to] = neighbour;
        }
        place += __popc(all & lanes);
        __syncwarp();  // nothing is read before it is written
    }
    if (lane == 0 && place != stop) rows.stops[v] = place;
}

// The same for one row, by a whole block.
__device__ __forceinline__ void pack_long_row(const Rows& rows, const Edges& edges, u32 round, u32 v, u64* warp_sums) {
    const u32 begin = rows.begins[v], stop = rows.stops[v];
    u32 place = begin;
    for (u32 first = begin; first < stop; first += min(blockDim.x, stop - first)) {
        const u32 at = first + threadIdx.x;
        const bool is_in = threadIdx.x < stop - first;
        const u32 edge = is_in ? rows.edges[at] : 0, neighbour = is_in ? rows.neighbours[at] : 0;
        const bool stays = is_in && edges.when[edge] >= round;
        u32 total;
        const u32 to = place + BlockTeam::sum_before(u32(stays), warp_sums, &total);  // all have read when it returns
        if (stays) {
            rows.edges[to] = edge;
            rows.neighbours[to] = neighbour;
        }
        place += total;
        __syncthreads();  // the sums are free again, and nothing is read before it is written
    }
    if (threadIdx.x == 0 && place != stop) rows.stops[v] = place;
}

__device__ __forceinline__ void pack_rows(const Rows& rows, const Edges& edges, u32 round, u64* warp_sums) {
    for (u64 v = u64(rows.first_long) + blockIdx.x; v < rows.n; v += gridDim.x)
        pack_long_row(rows, edges, round, u32(v), warp_sums);
    const u32 groups = WARP / ROW_LANES, group = threadIdx.x % WARP / ROW_LANES;
    for (u64 first = u64(WarpTeam::number()) * groups; first < rows.first_long; first += u64(WarpTeam::count()) * groups)
        pack_short_rows(rows, edges, round, u32(first) + group, rows.first_long);
}

// Lets those edges die one of whose ends has too few edges for more than bound triangles at each.
__device__ __forceinline__ void prune_edges(const Rows& rows, const Edges& edges, u32 bound, Tally* tally) {
    u32 pruned = 0;
    for (u64 edge = u64(blockIdx.x) * blockDim.x + threadIdx.x; edge < edges.m; edge += u64(gridDim.x) * blockDim.x) {
        const u32 u = edges.tails[edge], v = edges.heads[edge];
        if (min(rows.stops[u] - rows.begins[u], rows.stops[v] - rows.begins[v]) > bound + 1) continue;
        pruned += edges.when[edge] != DEAD_AT_FIRST;
        edges.supports[edge] = bound;
        edges.when[edge] = DEAD_AT_FIRST;
    }
    for (u32 distance = WARP / 2; distance > 0; distance /= 2) pruned += __shfl_xor_sync(ALL_LANES, pruned, distance);
    if (threadIdx.x % WARP == 0 && pruned > 0) atomicAdd(&tally->kept, pruned);
}

// Before the triangles of all living edges are counted.
__device__ __forceinline__ void clear_supports(const Edges& edges) {
    for (u64 edge = u64(blockIdx.x) * blockDim.x + threadIdx.x; edge < edges.m; edge += u64(gridDim.x) * blockDim.x)
        if (edges.when[edge] == ALIVE) edges.supports[edge] = 0;
}
