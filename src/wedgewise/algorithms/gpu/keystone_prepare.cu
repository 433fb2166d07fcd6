// What: splits the rows of an oriented graph at the hubs, and makes the items and the searches that keystone.cu goes
//   through.
// Paper: ours.
// Who does what: a thread per row, then a thread per arc, then a thread per item.
// Input: ids by rank, the tail of every arc. Output: see keystone.py.
#include "common/keystone.cuh"
#include "common/reduce.cuh"
#include "common/search.cuh"

// Where each row's hubs begin, and how many loads of 8 ids they take.
extern "C" __global__ void split_rows(const offset_t* offsets, const u32* heads, u32 n, u32 first_near, u32 first_hub,
                                      offset_t* near_begin, offset_t* hubs_begin, u32* near_loads, u32* hub_loads) {
    for (u64 a = u64(blockIdx.x) * blockDim.x + threadIdx.x; a < n; a += u64(gridDim.x) * blockDim.x) {
        const offset_t begin = offsets[a], end = offsets[a + 1];
        const offset_t hub = first_not_below(heads, begin, end, first_hub);
        const offset_t near = first_not_below(heads, hub, end, first_near);
        near_begin[a] = near;
        hubs_begin[a] = hub;
        near_loads[a] = (end - near + IDS_PER_LOAD - 1) / IDS_PER_LOAD;
        hub_loads[a] = (end - hub + IDS_PER_LOAD - 1) / IDS_PER_LOAD;
    }
}

struct Split {
    const offset_t* offsets;
    const u32* heads;
    const u32* tails;
    const offset_t* near_begin;
    const offset_t* hubs_begin;
    const u32* near_start;  // loads before row a's
    const u32* hub_start;
    Hubs hubs;
};

// The item that begins at an arc, without its owner; x = y where an earlier arc began it or nothing lies behind the arc.
__device__ __forceinline__ uint4 item_at(Split g, offset_t arc) {
    const u32 a = g.tails[arc], b = g.heads[arc], unit = unit_of(g.hubs, b);
    const offset_t begin = g.offsets[a], end = g.offsets[a + 1], hub = g.hubs_begin[a];
    if (b < g.hubs.first_near) {
        const u32 first = arc < hub ? 0 : (arc + 1 - hub) / IDS_PER_LOAD;
        return make_uint4(g.hub_start[a] + first, g.hub_start[a + 1], 1, 0);
    }
    if (arc + 1 >= end || (arc > begin && unit_of(g.hubs, g.heads[arc - 1]) == unit)) return make_uint4(0, 0, 0, 0);
    const u32 first_pivot = b - (b - g.hubs.first_near) % NEAR_PIVOTS;
    u32 pivots = 0;
    for (offset_t other = arc; other < end && g.heads[other] - first_pivot < NEAR_PIVOTS; ++other)
        pivots |= 1u << (g.heads[other] - first_pivot);
    return make_uint4(g.near_start[a] + (arc - g.near_begin[a]) / IDS_PER_LOAD, g.near_start[a + 1], pivots, 0);
}

// Copies the ids of hubs; adds up the loads of far pivots, and the arcs of units unless there are none to fill.
extern "C" __global__ void measure_arcs(const offset_t* offsets, const u32* heads, const u32* tails,
                                        const offset_t* near_begin, const offset_t* hubs_begin, const u32* near_start,
                                        const u32* hub_start, u32 n, u32 first_near, u32 first_hub, u64 m,
                                        u16* near_ids, u16* hub_ids, u64* pivot_loads, u32* unit_arcs,
                                        u32 units) {
    const Hubs hubs = {n, first_near, first_hub};
    const Split g = {offsets, heads, tails, near_begin, hubs_begin, near_start, hub_start, hubs};
    for (u64 arc = u64(blockIdx.x) * blockDim.x + threadIdx.x; arc < m; arc += u64(gridDim.x) * blockDim.x) {
        const u32 a = tails[arc], b = heads[arc];
        if (b >= first_hub) hub_ids[u64(hub_start[a]) * IDS_PER_LOAD + (arc - hubs_begin[a])] = b - first_hub;
        if (b >= first_near) near_ids[u64(near_start[a]) * IDS_PER_LOAD + (arc - near_begin[a])] = b - first_near;
        if (b < first_near) {
            const uint4 item = item_at(g, arc);
            if (item.x < item.y) atomicAdd(pivot_loads + b, u64(item.y - item.x));
        }
        if (units > 0) atomicAdd(unit_arcs + unit_of(hubs, b), 1u);
    }
}

// The shorter of two lists as keys, the longer one to look them up in.
__device__ __forceinline__ Search search_for(offset_t x, offset_t y, offset_t z, offset_t w) {
    return y - x <= w - z ? Search{x, y, z, w} : Search{z, w, x, y};
}

// What is left to search at an arc whose pivot has a table, or has none.
__device__ __forceinline__ Search search_at(Split g, offset_t arc, bool has_table) {
    const u32 a = g.tails[arc], b = g.heads[arc];
    if (!has_table) return search_for(arc + 1, g.offsets[a + 1], g.offsets[b], g.offsets[b + 1]);
    if (b >= g.hubs.first_hub) return {0, 0, 0, 0};
    return search_for(arc + 1, max(arc + 1, g.hubs_begin[a]), g.offsets[b], g.hubs_begin[b]);
}

struct Range {
    u32 first_unit, end_unit;
    const u8* has_table;
};

struct Found {
    u32 unit;
    bool item, search;
    Search range;
};

// What an arc whose unit is in a range makes: an item, a search, both or neither.
__device__ __forceinline__ Found look_at(Split g, Range range, u64 arc, u64 m) {
    Found found = {0, false, false, {0, 0, 0, 0}};
    if (arc >= m) return found;
    found.unit = unit_of(g.hubs, g.heads[arc]);
    if (found.unit < range.first_unit || found.unit >= range.end_unit) return found;
    const bool has_table = range.has_table[found.unit];
    if (has_table) {
        const uint4 item = item_at(g, arc);
        found.item = item.x < item.y;
    }
    found.range = search_at(g, arc, has_table);
    found.search = found.range.keys_begin < found.range.keys_end;
    return found;
}

// Counts the items and the searches of units in [first_unit, end_unit).
extern "C" __global__ void count_items(const offset_t* offsets, const u32* heads, const u32* tails,
                                       const offset_t* near_begin, const offset_t* hubs_begin, const u32* near_start,
                                       const u32* hub_start, u32 n, u32 first_near, u32 first_hub, u64 m,
                                       u32 first_unit, u32 end_unit, const u8* has_table, u64* counts) {
    const Hubs hubs = {n, first_near, first_hub};
    const Split g = {offsets, heads, tails, near_begin, hubs_begin, near_start, hub_start, hubs};
    const Range range = {first_unit, end_unit, has_table};
    u64 items = 0, searches = 0;
    for (u64 arc = u64(blockIdx.x) * blockDim.x + threadIdx.x; arc < m; arc += u64(gridDim.x) * blockDim.x) {
        const Found found = look_at(g, range, arc, m);
        items += found.item;
        searches += found.search;
    }
    add_found(counts, items);
    add_found(counts + 1, searches);
}

// Lists owner << 32 | arc for every item and a Search for every search, in any order. taken[0] and taken[1] count both.
extern "C" __global__ void place_arcs(const offset_t* offsets, const u32* heads, const u32* tails,
                                      const offset_t* near_begin, const offset_t* hubs_begin, const u32* near_start,
                                      const u32* hub_start, u32 n, u32 first_near, u32 first_hub, u64 m,
                                      u32 first_unit, u32 end_unit, const u8* has_table, const u32* owner_of, u64* keys,
                                      offset_t* searches, u32* taken) {
    __shared__ u32 block_taken[2];
    __shared__ u32 block_first[2];
    const Hubs hubs = {n, first_near, first_hub};
    const Split g = {offsets, heads, tails, near_begin, hubs_begin, near_start, hub_start, hubs};
    const Range range = {first_unit, end_unit, has_table};
    for (u64 first = u64(blockIdx.x) * blockDim.x; first < m; first += u64(gridDim.x) * blockDim.x) {
        if (threadIdx.x < 2) block_taken[threadIdx.x] = 0;
        __syncthreads();
        const Found found = look_at(g, range, first + threadIdx.x, m);
        const u32 item = found.item ? atomicAdd(block_taken, 1u) : 0;
        const u32 search = found.search ? atomicAdd(block_taken + 1, 1u) : 0;
        __syncthreads();
        if (threadIdx.x < 2) block_first[threadIdx.x] = atomicAdd(taken + threadIdx.x, block_taken[threadIdx.x]);
        __syncthreads();  // and nobody clears what was taken before it is read
        if (found.item) keys[block_first[0] + item] = u64(owner_of[found.unit]) << 32 | (first + threadIdx.x);
        if (found.search) reinterpret_cast<Search*>(searches)[block_first[1] + search] = found.range;
    }
}

// The items of sorted keys.
extern "C" __global__ void write_items(const offset_t* offsets, const u32* heads, const u32* tails,
                                       const offset_t* near_begin, const offset_t* hubs_begin, const u32* near_start,
                                       const u32* hub_start, u32 n, u32 first_near, u32 first_hub,
                                       const u64* keys, u32 count, uint4* items) {
    const Hubs hubs = {n, first_near, first_hub};
    const Split g = {offsets, heads, tails, near_begin, hubs_begin, near_start, hub_start, hubs};
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += u64(gridDim.x) * blockDim.x) {
        uint4 item = item_at(g, offset_t(keys[at] & 0xFFFFFFFFu));
        item.w = u32(keys[at] >> 32);
        items[at] = item;
    }
}
