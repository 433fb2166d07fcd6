// What: counts the triangles of a task whose middle vertex b or last one c is not near, that is, which have no tables:
//   the heads of a row a in block ik are hashed in shared memory, and the rows of block jk at a's heads in block ij are
//   looked up there; of a row b that is near, the columns that are not.
// Paper: ours.
// Who does what: count_small_rows: a warp takes 32 rows from a counter, 8 threads go through one together.
//   count_large_rows: a block takes a row after the other. The rows of 8 arcs at a time are one list for 8 threads, so
//   that short ones leave none idle.
// Input: a triple in any numbering; the rows that can begin triangles, apart those with many arcs in ij, or with more
//   than SMALL_ROW in ik.
// Output: triangles and tests, added to found[0] and found[1].
// Memory: 4 bytes per row. Shared: 64 bytes per thread of slots for small rows, 4 bytes per slot for large ones, two
//   offsets per thread.
// Limits: one look-up for every arc b -> c behind an arc a -> b. On Kronecker 20 in 4 rectilinear parts, where all but
//   the middle vertices of the first part are near, that is 0.25 G behind 8 M arcs, 4 bytes from L2 each and two
//   sectors more for the row of an arc: 1.6 GB, or 0.3 ms. Loads wait for L2, two at a time in every thread.
// Differs from the authors' code in: nothing, there is no other.
#include "common/block_sum.cuh"
#include "common/keystone_triples.cuh"

#define ROW_LANES 8u
#define SMALL_ROW 64u
#define SMALL_SLOTS (2 * SMALL_ROW)
#define ROWS_AT_ONCE 32u
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

// One row for each team of a warp; none for a team that is beyond the last.
__device__ __forceinline__ void count_row(const Triple& triple, Near near, u32 a, bool is_row, u32* ids, Rows rows,
                                          Found* found) {
    const Arcs none = {0, 0}, arcs = is_row ? far_arcs(triple, near, a) : none;
    const Arcs heads = arcs.begin < arcs.end ? arcs_of(triple.ik, a) : none;
    const Slots slots = {ids, bits_for(max(u32(heads.end - heads.begin), 1u))};
    for (u32 slot = Team::lane(); slot < 1u << slots.bits; slot += ROW_LANES) ids[slot] = EMPTY;
    __syncwarp();  // the slots are empty
    for (offset_t place = heads.begin + Team::lane(); place < heads.end; place += ROW_LANES)
        insert(slots, triple.ik.heads[place]);
    __syncwarp();  // the rows are there
    look_up_rows(triple, near, arcs, ROW_LANES, slots, rows, found);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    count_small_rows(const offset_t* ij_offsets, const u32* ij_heads, const offset_t* ik_offsets, const u32* ik_heads,
                     const offset_t* jk_offsets, const u32* jk_heads, const u32* places, const u32* lengths, u32 count,
                     u32 launch, u32 launches, u32* taken, u32 first_pivot, u32 first_column, const offset_t* far_ends,
                     u64* found) {
    __shared__ u32 ids[BLOCK / ROW_LANES * SMALL_SLOTS];
    __shared__ offset_t stops[BLOCK];
    __shared__ offset_t shifts[BLOCK];
    const Triple triple = {{ij_offsets, ij_heads}, {ik_offsets, ik_heads}, {jk_offsets, jk_heads}};
    const Listed listed = {places, lengths, count, launch, launches};
    const Near near = {first_pivot, first_column, far_ends};
    const u32 small = small_of_launch(listed), teams = WARP / ROW_LANES;
    Found sums = {0, 0};
    while (true) {
        u32 first = threadIdx.x % WARP == 0 ? atomicAdd(taken + 1, ROWS_AT_ONCE) : 0;
        first = __shfl_sync(ALL_LANES, first, 0);
        if (first >= small) break;
        const u32 end = min(first + ROWS_AT_ONCE, small);
        for (; first < end; first += teams) {
            const u32 number = first + Team::number() % teams;
            count_row(triple, near, number < end ? small_row(listed, number) : 0, number < end,
                      ids + Team::number() * SMALL_SLOTS, Rows::of_team(stops, shifts), &sums);
        }
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
