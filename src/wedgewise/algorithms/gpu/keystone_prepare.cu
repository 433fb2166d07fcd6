// What: splits the rows of an oriented graph at the hubs, chooses the pivots that have a table, and makes the items and
//   the searches that keystone.cu goes through, each in its place: nothing is sorted.
// Paper: ours.
// Who does what: a thread per row, per arc or per unit; a warp per CHUNK items; a block per tile of arcs, whose items of
//   each group it places side by side, tile after tile. So items of a table are about in the order of their tails:
//   neighbours have rows of about the same length, near each other.
// Input: ids by rank, the tail of every arc. Output: see keystone.py. Memory: what the host passes.
#include "common/keystone.cuh"
#include "common/reduce.cuh"
#include "common/search.cuh"

#define CHUNK WARP  // items whose cost is added up
#define ITEM (u64(1) << 32)

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

// Fills the last load of a row with an id that no table has.
__device__ __forceinline__ void pad(u16* ids, u64 first, u64 count, u32 id) {
    for (u64 at = count; at % IDS_PER_LOAD != 0; ++at) ids[first + at] = u16(id);
}

// Copies the ids of hubs. Counts the items of every group in the block's tile, group by group, tile by tile; of far pivots as
// if they had tables, ITEM each, and their loads on top: all rows together have fewer than 2^32. Counts in far_arcs[0] the
// arcs that may be searched, and the arcs of units unless there are none to fill.
extern "C" __global__ void measure_arcs(const offset_t* offsets, const u32* heads, const u32* tails,
                                        const offset_t* near_begin, const offset_t* hubs_begin, const u32* near_start,
                                        const u32* hub_start, u32 n, u32 first_near, u32 first_hub, u64 m,
                                        u32 tile_arcs, u16* near_ids, u16* hub_ids, u64* pivot_items, u32* items_of_tile,
                                        u32 groups, u32* unit_arcs, u32 units, u64* far_arcs) {
    DYNAMIC_SHARED(u32, group_items);
    const Hubs hubs = {n, first_near, first_hub};
    const Split g = {offsets, heads, tails, near_begin, hubs_begin, near_start, hub_start, hubs};
    for (u32 group = threadIdx.x; group < groups; group += blockDim.x) group_items[group] = 0;
    __syncthreads();
    u64 searchable = 0;
    const u64 tile = u64(blockIdx.x) * tile_arcs, tile_end = min(tile + tile_arcs, m);
    for (u64 arc = tile + threadIdx.x; arc < tile_end; arc += blockDim.x) {
        const u32 a = tails[arc], b = heads[arc];
        const u64 hub_first = u64(hub_start[a]) * IDS_PER_LOAD, near_first = u64(near_start[a]) * IDS_PER_LOAD;
        const bool is_last = arc + 1 == offsets[a + 1];
        if (b >= first_hub) {
            hub_ids[hub_first + (arc - hubs_begin[a])] = b - first_hub;
            if (is_last) pad(hub_ids, hub_first, arc + 1 - hubs_begin[a], n - first_hub);
        }
        if (b >= first_near) {
            near_ids[near_first + (arc - near_begin[a])] = b - first_near;
            if (is_last) pad(near_ids, near_first, arc + 1 - near_begin[a], n - first_near);
        }
        const uint4 item = item_at(g, offset_t(arc));
        if (item.x < item.y) {
            if (b < first_near) {
                atomicAdd(pivot_items + b, ITEM + (item.y - item.x));
            } else {
                atomicAdd(group_items + (unit_of(hubs, b) - first_near), 1u);
            }
        }
        searchable += b < first_near && !is_last && offsets[b] < offsets[b + 1];
        if (units > 0) atomicAdd(unit_arcs + unit_of(hubs, b), 1u);
    }
    __syncthreads();
    for (u32 group = threadIdx.x; group < groups; group += blockDim.x)
        items_of_tile[u64(group) * gridDim.x + blockIdx.x] = group_items[group];
    add_found(far_arcs, searchable);
}

// Groups have a table, and pivots of at least so many loads; units without one have no items.
extern "C" __global__ void choose_tables(const u64* pivot_items, const u32* tile_starts, u32 tiles, u32 least_loads,
                                         u32 first_near, u32 units, u8* has_table, u32* tables, u32* unit_items) {
    for (u32 unit = blockIdx.x * blockDim.x + threadIdx.x; unit < units; unit += gridDim.x * blockDim.x) {
        const bool has = unit >= first_near || u32(pivot_items[unit]) >= least_loads;
        has_table[unit] = has;
        tables[unit] = has;
        const u64 group = u64(unit - first_near) * tiles;
        if (unit >= first_near) unit_items[unit] = tile_starts[group + tiles] - tile_starts[group];
        else unit_items[unit] = has ? u32(pivot_items[unit] / ITEM) : 0;
    }
}

// The unit of every table, and where its items end.
extern "C" __global__ void list_tables(const u8* has_table, const u32* tables_before, const u32* items_before, u32 units,
                                       u32* unit_of_table, u32* table_ends) {
    for (u32 unit = blockIdx.x * blockDim.x + threadIdx.x; unit < units; unit += gridDim.x * blockDim.x) {
        if (!has_table[unit]) continue;
        unit_of_table[tables_before[unit]] = unit;
        table_ends[tables_before[unit]] = items_before[unit + 1];
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

__device__ __forceinline__ bool is_in(Range range, u32 unit) { return unit >= range.first_unit && unit < range.end_unit; }

// Writes the items of groups in [first_unit, end_unit) of the block's tile from where tile_starts says, which counts from
// the first group on; items[0] is the item number first_item of all units.
extern "C" __global__ void place_near(const offset_t* offsets, const u32* heads, const u32* tails,
                                      const offset_t* near_begin, const offset_t* hubs_begin, const u32* near_start,
                                      const u32* hub_start, u32 n, u32 first_near, u32 first_hub, u64 m, u32 first_unit,
                                      u32 end_unit, const u8* has_table, const u32* table_of, u32 tile_arcs,
                                      const u32* tile_starts, u32 groups, const u32* items_before, u32 first_item,
                                      uint4* items) {
    DYNAMIC_SHARED(u32, next_item);
    const Hubs hubs = {n, first_near, first_hub};
    const Split g = {offsets, heads, tails, near_begin, hubs_begin, near_start, hub_start, hubs};
    const Range range = {first_unit, end_unit, has_table};
    const u32 first_of_groups = items_before[first_near] - first_item;
    for (u32 group = threadIdx.x; group < groups; group += blockDim.x)
        next_item[group] = first_of_groups + tile_starts[u64(group) * gridDim.x + blockIdx.x];
    __syncthreads();
    const u64 tile = u64(blockIdx.x) * tile_arcs, tile_end = min(tile + tile_arcs, m);
    for (u64 arc = tile + threadIdx.x; arc < tile_end; arc += blockDim.x) {
        if (heads[arc] < first_near) continue;
        const u32 unit = unit_of(hubs, heads[arc]);
        if (!is_in(range, unit)) continue;
        uint4 item = item_at(g, offset_t(arc));
        if (item.x == item.y) continue;
        item.w = table_of[unit];
        items[atomicAdd(next_item + (unit - first_near), 1u)] = item;
    }
}

// Writes the items and the searches of single pivots in [first_unit, end_unit); searches[0] counts these.
extern "C" __global__ void place_far(const offset_t* offsets, const u32* heads, const u32* tails,
                                     const offset_t* near_begin, const offset_t* hubs_begin, const u32* near_start,
                                     const u32* hub_start, u32 n, u32 first_near, u32 first_hub, u64 m, u32 first_unit,
                                     u32 end_unit, const u8* has_table, const u32* table_of, u32* next_item,
                                     uint4* items, offset_t* search_list, u64* searches) {
    __shared__ u32 taken;
    __shared__ u64 first_search;
    const Hubs hubs = {n, first_near, first_hub};
    const Split g = {offsets, heads, tails, near_begin, hubs_begin, near_start, hub_start, hubs};
    const Range range = {first_unit, end_unit, has_table};
    for (u64 first = u64(blockIdx.x) * blockDim.x; first < m; first += u64(gridDim.x) * blockDim.x) {
        if (threadIdx.x == 0) taken = 0;
        __syncthreads();
        const u64 arc = first + threadIdx.x;
        Search search = {0, 0, 0, 0};
        if (arc < m && heads[arc] < first_near && is_in(range, heads[arc])) {
            const u32 b = heads[arc];
            uint4 item = item_at(g, offset_t(arc));
            if (has_table[b] && item.x < item.y) {
                item.w = table_of[b];
                items[atomicAdd(next_item + (b - first_unit), 1u)] = item;
            }
            search = search_at(g, offset_t(arc), has_table[b]);
        }
        const bool has_search = search.keys_begin < search.keys_end;
        const u32 place = has_search ? atomicAdd(&taken, 1u) : 0;
        __syncthreads();
        if (threadIdx.x == 0 && taken > 0) first_search = atomicAdd(searches, u64(taken));
        __syncthreads();  // and nobody clears what was taken before it is read
        if (has_search) reinterpret_cast<Search*>(search_list)[first_search + place] = search;
    }
}

// The cost of every CHUNK items from far_items on: loads, beginnings, and the building of every new table. Adds what near
// items cost to totals[0] and what far ones cost to totals[1].
extern "C" __global__ void add_costs(const uint4* items, u32 far_items, u32 count, u32 table_cost, u64* chunk_costs,
                                     u64* totals) {
    const u64 far_chunks = (u64(far_items) + CHUNK - 1) / CHUNK, chunks = far_chunks + (u64(count) - far_items + CHUNK - 1) / CHUNK;
    u64 near = 0, far = 0;
    for (u64 chunk = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP; chunk < chunks; chunk += u64(gridDim.x) * blockDim.x / WARP) {
        const bool is_far = chunk < far_chunks;
        const u64 begin = is_far ? 0 : far_items, end = is_far ? far_items : count;
        const u64 at = begin + (is_far ? chunk : chunk - far_chunks) * CHUNK + threadIdx.x % WARP;
        u64 cost = 0;
        if (at < end) {
            const uint4 item = items[at];
            cost = item.y - item.x + 2 + (at > begin && items[at - 1].w != item.w ? table_cost : 0);
        }
        const u64 sum = warp_sum(cost);
        if (!is_far && threadIdx.x % WARP == 0) chunk_costs[chunk - far_chunks] = sum;
        (is_far ? far : near) += cost;
    }
    add_found(totals, near);
    add_found(totals + 1, far);
}

// Cuts the near items into shares of about equal cost, at chunks: cuts[i] is where the share i begins.
extern "C" __global__ void write_cuts(const u64* cost_before, u32 chunks, u32 shares, u32 far_items, u32 count, u32* cuts) {
    for (u32 share = blockIdx.x * blockDim.x + threadIdx.x; share <= shares; share += gridDim.x * blockDim.x) {
        const u64 wanted = cost_before[chunks] / shares * share + cost_before[chunks] % shares * share / shares;
        u32 low = 0, high = chunks;  // the first chunk before which there is at least that much
        while (low < high) {
            const u32 middle = low + (high - low) / 2;
            if (cost_before[middle] < wanted) low = middle + 1;
            else high = middle;
        }
        cuts[share] = u32(min(u64(count), far_items + u64(low) * CHUNK));
    }
}
