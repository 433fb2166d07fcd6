// What: splits the rows of an oriented graph at the hubs, and makes the items that keystone.cu goes through.
// Paper: ours.
// Who does what: a thread per row, then a thread per arc.
// Input: ids by rank, the tail of every arc. Output: see keystone.py.
#include "common/reduce.cuh"

#define IDS_PER_LOAD 8u
#define NEAR_PIVOTS 32u

// Where each row's hubs begin, and how many loads of 8 ids they take.
extern "C" __global__ void split_rows(const offset_t* offsets, const u32* heads, u32 n, u32 first_near, u32 first_far,
                                      offset_t* near_begin, offset_t* far_begin, u32* near_loads, u32* far_loads) {
    const u32 a = blockIdx.x * blockDim.x + threadIdx.x;
    if (a >= n) return;
    const offset_t begin = offsets[a], end = offsets[a + 1];
    const offset_t far = first_not_below(heads, begin, end, first_far);
    const offset_t near = first_not_below(heads, far, end, first_near);
    near_begin[a] = near;
    far_begin[a] = far;
    near_loads[a] = (end - near + IDS_PER_LOAD - 1) / IDS_PER_LOAD;
    far_loads[a] = (end - far + IDS_PER_LOAD - 1) / IDS_PER_LOAD;
}

struct Split {
    const offset_t* offsets;
    const u32* heads;
    const u32* tails;
    const offset_t* near_begin;
    const offset_t* far_begin;
    const u32* near_start;  // loads before row a's
    const u32* far_start;
    u32 first_near, first_far;
};

__device__ __forceinline__ u32 loads_behind(offset_t arc, offset_t hubs) {
    return arc > hubs ? (arc - hubs) / IDS_PER_LOAD : 0;
}

// The loads that an arc below the near hubs makes its pivot stream.
__device__ __forceinline__ uint2 far_item(Split g, offset_t arc) {
    const u32 a = g.tails[arc], start = g.far_start[a];
    return make_uint2(start + loads_behind(arc + 1, g.far_begin[a]), g.far_start[a + 1]);
}

// The item that begins at an arc to a near hub; x = y where an earlier arc began it or nothing lies behind the arc.
__device__ __forceinline__ uint4 near_item(Split g, offset_t arc) {
    const u32 a = g.tails[arc], group = (g.heads[arc] - g.first_near) / NEAR_PIVOTS;
    const offset_t begin = g.near_begin[a], end = g.offsets[a + 1];
    if (arc + 1 >= end || (arc > begin && (g.heads[arc - 1] - g.first_near) / NEAR_PIVOTS == group))
        return make_uint4(0, 0, 0, group);
    u32 pivots = 0;
    for (offset_t other = arc; other < end && (g.heads[other] - g.first_near) / NEAR_PIVOTS == group; ++other)
        pivots |= 1u << (g.heads[other] - g.first_near) % NEAR_PIVOTS;
    return make_uint4(g.near_start[a] + loads_behind(arc, begin), g.near_start[a + 1], pivots, group);
}

// Copies the ids of hubs; counts the items of near groups and far pivots, and the loads of far pivots.
extern "C" __global__ void measure_arcs(const offset_t* offsets, const u32* heads, const u32* tails,
                                        const offset_t* near_begin, const offset_t* far_begin, const u32* near_start,
                                        const u32* far_start, u32 first_near, u32 first_far, u64 m, u16* near_ids,
                                        u16* far_ids, u32* group_items, u32* pivot_items, u32* pivot_loads) {
    const Split g = {offsets, heads, tails, near_begin, far_begin, near_start, far_start, first_near, first_far};
    for (u64 arc = u64(blockIdx.x) * blockDim.x + threadIdx.x; arc < m; arc += u64(gridDim.x) * blockDim.x) {
        const u32 a = tails[arc], b = heads[arc];
        if (b >= first_far) far_ids[u64(far_start[a]) * IDS_PER_LOAD + (arc - far_begin[a])] = b - first_far;
        if (b >= first_near) {
            near_ids[u64(near_start[a]) * IDS_PER_LOAD + (arc - near_begin[a])] = b - first_near;
            const uint4 item = near_item(g, arc);
            if (item.x < item.y) atomicAdd(group_items + item.w, 1u);
        } else {
            const uint2 item = far_item(g, arc);
            if (item.x < item.y) {
                atomicAdd(pivot_items + b, 1u);
                atomicAdd(pivot_loads + b, item.y - item.x);
            }
        }
    }
}

// The shorter of a's ids [x, y) and b's ids [z, w) as keys, the longer one as the list.
__device__ __forceinline__ uint4 search_task(u32 x, u32 y, u32 z, u32 w) {
    return y - x <= w - z ? make_uint4(x, y, z, w) : make_uint4(z, w, x, y);
}

// Writes near items and the far items of pivots that have a bitmap to their places, and lists what is left to search.
extern "C" __global__ void place_arcs(const offset_t* offsets, const u32* heads, const u32* tails,
                                      const offset_t* near_begin, const offset_t* far_begin, const u32* near_start,
                                      const u32* far_start, u32 first_near, u32 first_far, u64 m, const u8* has_bitmap,
                                      u32* group_cursors, u32* pivot_cursors, uint4* near_items, uint2* far_items,
                                      uint4* tasks, u32* task_count) {
    const Split g = {offsets, heads, tails, near_begin, far_begin, near_start, far_start, first_near, first_far};
    for (u64 arc = u64(blockIdx.x) * blockDim.x + threadIdx.x; arc < m; arc += u64(gridDim.x) * blockDim.x) {
        const u32 a = tails[arc], b = heads[arc];
        if (b >= first_near) {
            const uint4 item = near_item(g, arc);
            if (item.x < item.y) near_items[atomicAdd(group_cursors + item.w, 1u)] = item;
            continue;
        }
        const uint2 item = far_item(g, arc);
        if (has_bitmap[b] && item.x < item.y) far_items[atomicAdd(pivot_cursors + b, 1u)] = item;
        const u32 end = has_bitmap[b] ? far_begin[a] : offsets[a + 1], b_end = has_bitmap[b] ? far_begin[b] : offsets[b + 1];
        if (arc + 1 < end && offsets[b] < b_end)
            tasks[atomicAdd(task_count, 1u)] = search_task(arc + 1, end, offsets[b], b_end);
    }
}
