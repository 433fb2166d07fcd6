// What: counts the triangles of a task whose middle vertex b or last one c is not near, that is, which have no tables:
//   for every arc a -> b of block ij, what row a of ik and row b of jk have in common; of a row b that is near, among the
//   columns that are not.
// Paper: ours.
// Who does what: merge_small_rows: a warp takes 32 rows from a counter, their arcs are one list, a thread merges the two
//   rows of an arc. count_large_rows: a block takes a row after the other, whose heads in ik it hashes in shared memory;
//   the rows of 8 arcs at a time are one list for 8 threads, so that short ones leave none idle.
// Input: a triple in any numbering, rows ascending; the rows that can begin triangles, apart those with many arcs in ij,
//   or in ik.
// Output: triangles, added to found[0]; steps of the merges and look-ups, to found[1].
// Memory: 4 bytes per row. Shared: 4 bytes per slot and two offsets per thread for large rows, nothing for small ones.
// Limits: on Kronecker 22 in 4 rectilinear parts, where all but the middle vertices of the first part are near, the
//   small rows behind 11 M arcs of a block take 4.1 ms of an H200 in three tasks together. Merges read short rows by
//   single threads, from L1 and L2; hashing these rows as well, by 8 threads each, took 23.9 ms: clearing, filling and
//   describing a row is more work than merging it. In 8 hashed parts it is 19 ms against 31.
// Differs from the authors' code in: nothing, there is no other.
#include "common/block_sum.cuh"
#include "common/keystone_triples.cuh"
#include "common/merge.cuh"

#define ROW_LANES 8u
#define EMPTY 0xFFFFFFFFu
#define SPREAD 2654435769u  // 2^32 by the golden ratio
#ifndef BLOCK
#define BLOCK 256
#endif

// Open addressing in 2^bits slots, of which at least half are empty.
struct Slots {
    u32* ids;
    u32 bits;
};

// The least number of slots of which so many ids leave half empty.
__device__ __forceinline__ u32 bits_for(u32 length) { return 33 - __clz(length - 1); }

__device__ __forceinline__ u32 slot_of(Slots slots, u32 id) { return id * SPREAD >> (32 - slots.bits); }

__device__ __forceinline__ u32 next_slot(Slots slots, u32 slot) { return (slot + 1) & ((1u << slots.bits) - 1); }

__device__ __forceinline__ void insert(Slots slots, u32 id) {
    u32 slot = slot_of(slots, id);
    while (atomicCAS(slots.ids + slot, EMPTY, id) != EMPTY) slot = next_slot(slots, slot);
}

__device__ __forceinline__ bool holds(Slots slots, u32 id) {
    u32 slot = slot_of(slots, id), seen = slots.ids[slot];
    while (seen != id && seen != EMPTY) {
        slot = next_slot(slots, slot);
        seen = slots.ids[slot];
    }
    return seen == id;
}

// Eight threads of a warp that go through a row together; the warp's four teams keep step.
struct Team {
    static __device__ __forceinline__ u32 lane() { return threadIdx.x % ROW_LANES; }
    static __device__ __forceinline__ u32 number() { return threadIdx.x / ROW_LANES; }
};

// Eight rows behind each other: keys [stops[k - 1], stops[k]) are heads[key + shifts[k]], modulo 2^OFFSET_BITS.
struct Rows {
    offset_t* stops;
    offset_t* shifts;

    __device__ __forceinline__ static Rows of_team(offset_t* stops, offset_t* shifts) {
        return {stops + Team::number() * ROW_LANES, shifts + Team::number() * ROW_LANES};
    }
};

// The part of row b that is looked up.
__device__ __forceinline__ Arcs far_part(Block jk, Near near, u32 b) {
    return {jk.offsets[b], b < near.first_pivot ? jk.offsets[b + 1] : near.far_ends[b - near.first_pivot]};
}

// The arcs of row a whose heads have such a part: all, unless a has near columns alone.
__device__ __forceinline__ Arcs far_arcs(const Triple& triple, Near near, u32 a) {
    const Arcs arcs = arcs_of(triple.ij, a);
    if (triple.ik.heads[triple.ik.offsets[a]] < near.first_column) return arcs;
    return {arcs.begin, first_not_below(triple.ij.heads, arcs.begin, arcs.end, near.first_pivot)};
}

// Puts what is looked up for at most eight of the arcs behind each other; the number of keys.
__device__ __forceinline__ offset_t combine(const Triple& triple, Near near, Arcs arcs, Rows rows) {
    Arcs row = {0, 0};
    if (arcs.begin < arcs.end && arcs.end - arcs.begin > Team::lane())
        row = far_part(triple.jk, near, triple.ij.heads[arcs.begin + Team::lane()]);
    const offset_t length = row.end - row.begin;
    offset_t stop = length;
    for (u32 distance = 1; distance < ROW_LANES; distance *= 2) {
        const offset_t below = __shfl_up_sync(ALL_LANES, stop, distance, ROW_LANES);
        if (Team::lane() >= distance) stop += below;
    }
    rows.stops[Team::lane()] = stop;
    rows.shifts[Team::lane()] = row.begin - (stop - length);
    __syncwarp();  // the rows are described
    return rows.stops[ROW_LANES - 1];
}

// The id of a key; `row` is one that does not stop before the row of an earlier key.
__device__ __forceinline__ u32 id_of(Block jk, Rows rows, offset_t key, u32* row) {
    while (key >= rows.stops[*row]) ++*row;
    return jk.heads[offset_t(key + rows.shifts[*row])];
}

// Looks up what lies behind the arcs, eight at a time, then `stride` further.
__device__ __forceinline__ void look_up_rows(const Triple& triple, Near near, Arcs arcs, u32 stride, Slots slots,
                                             Rows rows, Found* found) {
    for (; __any_sync(ALL_LANES, arcs.begin < arcs.end); arcs.begin += stride) {
        const offset_t keys = combine(triple, near, arcs, rows);
        u32 row = 0, hits = 0;
        offset_t key = Team::lane();
        for (; key + ROW_LANES < keys; key += 2 * ROW_LANES) {
            const u32 id = id_of(triple.jk, rows, key, &row), next_id = id_of(triple.jk, rows, key + ROW_LANES, &row);
            hits += holds(slots, id) + holds(slots, next_id);
        }
        if (key < keys) hits += holds(slots, id_of(triple.jk, rows, key, &row));
        found->triangles += hits;
        if (Team::lane() == 0) found->tests += keys;
        __syncwarp();  // nobody reads the rows any more
    }
}

// The sum of a number over the lanes up to this one.
__device__ __forceinline__ u32 sum_up_to(u32 number) {
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        const u32 below = __shfl_up_sync(ALL_LANES, number, distance);
        if (threadIdx.x % WARP >= distance) number += below;
    }
    return number;
}

// The first lane whose stop is above the key, or the last lane.
__device__ __forceinline__ u32 lane_of(u32 stop, u32 key) {
    u32 lane = 0;
    for (u32 step = WARP / 2; step > 0; step /= 2)
        if (__shfl_sync(ALL_LANES, stop, lane + step - 1) <= key) lane += step;
    return lane;
}

// Every lane has a row; their arcs are one list, a thread merges the rows of an arc.
__device__ __forceinline__ void merge_rows(const Triple& triple, Near near, u32 a, bool is_row, Found* found) {
    const Arcs none = {0, 0}, arcs = is_row ? far_arcs(triple, near, a) : none;
    const u32 length = arcs.begin < arcs.end ? u32(arcs.end - arcs.begin) : 0, stop = sum_up_to(length);
    const Arcs heads = length > 0 ? arcs_of(triple.ik, a) : none;
    const offset_t shift = arcs.begin - (stop - length);
    const u32 all = __shfl_sync(ALL_LANES, stop, WARP - 1);
    for (u32 first = 0; first < all; first += WARP) {
        const u32 key = first + threadIdx.x % WARP, lane = lane_of(stop, key);
        const offset_t arc = key + __shfl_sync(ALL_LANES, shift, lane);
        const Arcs ends = {__shfl_sync(ALL_LANES, heads.begin, lane), __shfl_sync(ALL_LANES, heads.end, lane)};
        if (key >= all) continue;
        const Arcs row = far_part(triple.jk, near, triple.ij.heads[arc]);
        const Merged merged = merge_lists(triple.ik.heads, ends.begin, ends.end, triple.jk.heads, row.begin, row.end);
        found->triangles += merged.common;
        found->tests += merged.steps;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    merge_small_rows(const offset_t* ij_offsets, const u32* ij_heads, const offset_t* ik_offsets, const u32* ik_heads,
                     const offset_t* jk_offsets, const u32* jk_heads, const u32* places, const u32* lengths, u32 count,
                     u32 launch, u32 launches, u32* taken, u32 first_pivot, u32 first_column, const offset_t* far_ends,
                     u64* found) {
    const Triple triple = {{ij_offsets, ij_heads}, {ik_offsets, ik_heads}, {jk_offsets, jk_heads}};
    const Listed listed = {places, lengths, count, launch, launches};
    const Near near = {first_pivot, first_column, far_ends};
    const u32 small = small_of_launch(listed);
    Found sums = {0, 0};
    while (true) {
        u32 first = threadIdx.x % WARP == 0 ? atomicAdd(taken + 1, WARP) : 0;
        first = __shfl_sync(ALL_LANES, first, 0);
        if (first >= small) break;
        const u32 number = first + threadIdx.x % WARP;
        merge_rows(triple, near, number < small ? small_row(listed, number) : 0, number < small, &sums);
    }
    add_block_found(found, sums.triangles, sums.tests);
}

// A row with more than most_heads in block ik, a power of two, is looked up in several times, in stretches of so many.
extern "C" __global__ void __launch_bounds__(BLOCK)
    count_large_rows(const offset_t* ij_offsets, const u32* ij_heads, const offset_t* ik_offsets, const u32* ik_heads,
                     const offset_t* jk_offsets, const u32* jk_heads, const u32* places, const u32* lengths, u32 count,
                     u32 launch, u32 launches, u32* taken, u32 first_pivot, u32 first_column, const offset_t* far_ends,
                     u32 most_heads, u64* found) {
    DYNAMIC_SHARED(u32, ids);
    __shared__ offset_t stops[BLOCK];
    __shared__ offset_t shifts[BLOCK];
    __shared__ u32 next;
    const Triple triple = {{ij_offsets, ij_heads}, {ik_offsets, ik_heads}, {jk_offsets, jk_heads}};
    const Listed listed = {places, lengths, count, launch, launches};
    const Near near = {first_pivot, first_column, far_ends};
    const u32 large = large_of_launch(listed);
    Found sums = {0, 0};
    while (true) {
        if (threadIdx.x == 0) next = atomicAdd(taken, 1u);
        __syncthreads();  // the row is known
        if (next >= large) break;
        const u32 a = large_row(listed, next);
        __syncthreads();  // to everyone
        const Arcs arcs = far_arcs(triple, near, a);
        const offset_t stop = arcs.begin < arcs.end ? ik_offsets[a + 1] : 0;
        for (offset_t first = ik_offsets[a]; first < stop; first += most_heads) {
            const u32 length = u32(min(offset_t(stop - first), offset_t(most_heads)));
            const Slots slots = {ids, bits_for(length)};
            for (u32 slot = threadIdx.x; slot < 1u << slots.bits; slot += blockDim.x) ids[slot] = EMPTY;
            __syncthreads();  // the slots are empty
            for (u32 place = threadIdx.x; place < length; place += blockDim.x) insert(slots, ik_heads[first + place]);
            __syncthreads();  // the stretch is there
            look_up_rows(triple, near, {offset_t(arcs.begin + Team::number() * ROW_LANES), arcs.end}, blockDim.x, slots,
                         Rows::of_team(stops, shifts), &sums);
            __syncthreads();  // nobody looks up any more
        }
    }
    add_block_found(found, sums.triangles, sums.tests);
}
