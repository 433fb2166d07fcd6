// What: counts the triangles of tasks whose middle vertex b or last one c is not near, that is, which have no tables: for
//   every arc a -> b of block ij, what row a of ik and row b of jk have in common; of a row b that is near, among the
//   columns that are not.
// Paper: ours.
// Who does what: blocks take units of the batch from a counter, a task or equal parts of a long one, and list their rows.
//   A block takes a row with many arcs, whose heads in ik it hashes in shared memory; the rows of 8 arcs at a time are one
//   list for 8 threads, so that short ones leave none idle. A warp takes 32 of the other rows, their arcs are one list, a
//   thread merges the two rows of an arc.
// Input: a batch of tasks in any numbering, rows ascending; where their blocks are.
// Output: triangles, steps of the merges and look-ups, and clock ticks of every task, added to found[task].
// Memory: 24 bytes per unit. Shared: 4 bytes per slot, two offsets and two listed rows per thread.
// Limits: merges read short rows by single threads, from L1 and L2; hashing these rows as well, by 8 threads each, took
//   five times as long on Kronecker 22: clearing, filling and describing a row is more work than merging it.
// Differs from the authors' code in: nothing, there is no other.
#include "common/keystone_triples.cuh"
#include "common/listed_rows.cuh"
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
__device__ __forceinline__ Arcs far_part(const Task& task, u32 b) {
    const Block jk = task.blocks.jk;
    const Arcs row = arcs_of(jk, b);
    if (b < task.first_pivot) return row;
    return {row.begin, first_not_below(jk.heads, row.begin, row.end, task.first_column)};
}

// The arcs of row a whose heads have such a part: all, unless a has near columns alone.
__device__ __forceinline__ Arcs far_arcs(const Task& task, u32 a) {
    const Block ij = task.blocks.ij, ik = task.blocks.ik;
    const Arcs arcs = arcs_of(ij, a);
    if (ik.heads[ik.offsets[a]] < task.first_column) return arcs;
    return {arcs.begin, first_not_below(ij.heads, arcs.begin, arcs.end, task.first_pivot)};
}

// Puts what is looked up for at most eight of the arcs behind each other; the number of keys.
__device__ __forceinline__ offset_t combine(const Task& task, Arcs arcs, Rows rows) {
    Arcs row = {0, 0};
    if (arcs.begin < arcs.end && arcs.end - arcs.begin > Team::lane())
        row = far_part(task, task.blocks.ij.heads[arcs.begin + Team::lane()]);
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
__device__ __forceinline__ void look_up_rows(const Task& task, Arcs arcs, u32 stride, Slots slots, Rows rows,
                                             Found* found) {
    const Block jk = task.blocks.jk;
    for (; __any_sync(ALL_LANES, arcs.begin < arcs.end); arcs.begin += stride) {
        const offset_t keys = combine(task, arcs, rows);
        u32 row = 0, hits = 0;
        offset_t key = Team::lane();
        for (; key + ROW_LANES < keys; key += 2 * ROW_LANES) {
            const u32 id = id_of(jk, rows, key, &row), next_id = id_of(jk, rows, key + ROW_LANES, &row);
            hits += holds(slots, id) + holds(slots, next_id);
        }
        if (key < keys) hits += holds(slots, id_of(jk, rows, key, &row));
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
__device__ __forceinline__ void merge_rows(const Task& task, u32 a, bool is_row, Found* found) {
    const Block ij = task.blocks.ij, ik = task.blocks.ik, jk = task.blocks.jk;
    const Arcs none = {0, 0}, arcs = is_row ? far_arcs(task, a) : none;
    const u32 length = arcs.begin < arcs.end ? u32(arcs.end - arcs.begin) : 0, stop = sum_up_to(length);
    const Arcs heads = length > 0 ? arcs_of(ik, a) : none;
    const offset_t shift = arcs.begin - (stop - length);
    const u32 all = __shfl_sync(ALL_LANES, stop, WARP - 1);
    for (u32 first = 0; first < all; first += WARP) {
        const u32 key = first + threadIdx.x % WARP, lane = lane_of(stop, key);
        const offset_t arc = key + __shfl_sync(ALL_LANES, shift, lane);
        const Arcs ends = {__shfl_sync(ALL_LANES, heads.begin, lane), __shfl_sync(ALL_LANES, heads.end, lane)};
        if (key >= all) continue;
        const Arcs row = far_part(task, ij.heads[arc]);
        const Merged merged = merge_lists(ik.heads, ends.begin, ends.end, jk.heads, row.begin, row.end);
        found->triangles += merged.common;
        found->tests += merged.steps;
    }
}

// A row with more than most_heads in block ik, a power of two, is looked up in several times, in stretches of so many.
__device__ __forceinline__ void count_large_row(const Task& task, u32 a, u32 most_heads, u32* ids, Rows rows,
                                                Found* found) {
    const Block ik = task.blocks.ik;
    const Arcs arcs = far_arcs(task, a);
    const offset_t stop = arcs.begin < arcs.end ? ik.offsets[a + 1] : 0;
    for (offset_t first = ik.offsets[a]; first < stop; first += most_heads) {
        const u32 length = u32(min(offset_t(stop - first), offset_t(most_heads)));
        const Slots slots = {ids, bits_for(length)};
        for (u32 slot = threadIdx.x; slot < 1u << slots.bits; slot += blockDim.x) ids[slot] = EMPTY;
        __syncthreads();  // the slots are empty
        for (u32 place = threadIdx.x; place < length; place += blockDim.x) insert(slots, ik.heads[first + place]);
        __syncthreads();  // the stretch is there
        look_up_rows(task, {offset_t(arcs.begin + Team::number() * ROW_LANES), arcs.end}, blockDim.x, slots, rows, found);
        __syncthreads();  // nobody looks up any more
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    count_rows(const u64* blocks, const u32* tasks, u32 shares, const u32* units, u32 count, u32* taken, u64* found,
               u32 most_middles, u32 most_ends, u32 most_heads) {
    DYNAMIC_SHARED(u32, ids);
    __shared__ offset_t stops[BLOCK];
    __shared__ offset_t shifts[BLOCK];
    __shared__ u32 places[MAX_LISTED];
    __shared__ u32 lengths[3];
    const Listed listed = {places, lengths};
    for_each_task({blocks, tasks, shares, units, count, taken, found}, [&](Unit unit, const Task& task, Found* sums) {
        list_rows(task, unit, {most_middles, most_ends}, listed, [&](u32 large, u32 small) {
            for (u32 number = 0; number < large; ++number)
                count_large_row(task, large_row(listed, number), most_heads, ids, Rows::of_team(stops, shifts), sums);
            for (u32 first = take_small(listed, WARP); first < small; first = take_small(listed, WARP)) {
                const u32 number = first + threadIdx.x % WARP;
                merge_rows(task, number < small ? small_row(listed, number) : 0, number < small, sums);
            }
        });
    });
}
