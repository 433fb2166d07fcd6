#include "common/types.cuh"

// A hash table of buckets with room for several ids each. Levels are interleaved: the k-th ids of all buckets lie side
// by side. The first levels are in shared memory. What a full bucket cannot take goes to the next one that can.
struct Buckets {
    u32* asked;   // by how many ids each bucket was asked; more than capacity: it passed some on
    u32* near;    // levels [0, cached), shared
    u32* far;     // levels [cached, capacity), global
    u32 count;    // a power of two
    u32 cached;   // at most capacity
    u32 capacity;
};

__device__ __forceinline__ u32 bucket_of(const Buckets& table, u32 id) { return id & (table.count - 1); }

// Takes an id; there must be room for all that come.
__device__ __forceinline__ void insert(const Buckets& table, u32 id) {
    u32 bucket = bucket_of(table, id), level = atomicAdd(table.asked + bucket, 1u);
    for (; level >= table.capacity; level = atomicAdd(table.asked + bucket, 1u)) bucket = bucket_of(table, bucket + 1);
    if (level < table.cached) table.near[level * table.count + bucket] = id;
    else table.far[(level - table.cached) * table.count + bucket] = id;
}

// Empties the table, and takes ids[0, length) with all threads of the team.
template <class Team>
__device__ __forceinline__ void fill_table(const Buckets& table, const u32* ids, u32 length) {
    for (u32 bucket = Team::rank(); bucket < table.count; bucket += Team::size()) table.asked[bucket] = 0;
    Team::meet();  // the buckets are empty
    for (u32 at = Team::rank(); at < length; at += Team::size()) insert(table, ids[at]);
    Team::meet();  // all are in their buckets
}

// The buckets of one warp of a block: a power of two for each.
__device__ __forceinline__ Buckets part_of_warp(const Buckets& table) {
    const u32 count = table.count / (blockDim.x / WARP), first = threadIdx.x / WARP * count;
    return {table.asked + first, table.near + first * table.cached, table.far + first * (table.capacity - table.cached),
            count,               table.cached,                      table.capacity};
}

// Whether an id was taken. The search ends: the last free place of a full table was nobody's to pass on.
__device__ __forceinline__ bool holds(const Buckets& table, u32 id) {
    u32 bucket = bucket_of(table, id), asked;
    do {
        asked = table.asked[bucket];
        const u32 near_end = min(asked, table.cached) * table.count;
        bool found = false;
        for (u32 slot = bucket; slot < near_end; slot += table.count) found |= table.near[slot] == id;
        if (found || asked <= table.cached) return found;
        const u32 far_end = (min(asked, table.capacity) - table.cached) * table.count;
        for (u32 slot = bucket; slot < far_end; slot += table.count)
            if (table.far[slot] == id) return true;
        bucket = bucket_of(table, bucket + 1);
    } while (asked > table.capacity);
    return false;
}
