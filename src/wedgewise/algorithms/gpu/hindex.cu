// What: H-INDEX. Hashes the shorter row of both ends of an arc, and looks the ids of the longer one up.
// Paper: S. Pandey, X. S. Li, A. Buluc, J. Xu, H. Liu, "H-INDEX: Hash-indexing for parallel triangle counting on GPUs",
//   HPEC 2019, 1-7.
// Who does what: a warp or a block per arc u -> v. Its threads clear the lengths of the buckets, take the shorter of
//   N+(u) and N+(v) into them, one id each, and look up the longer one. A warp finds out where the rows of its next
//   arcs lie at once, a lane for each.
// Input: any oriented graph; tails[arc] is u.
// Output: triangles and ids looked up, added to found[0] and found[1].
// Memory: 4 bytes per arc of tails; for every warp or block that runs at once 4 bytes for each place of its table. The
//   k-th ids of all buckets lie side by side, so that 32 look-ups read one line per level. Shared: 4 bytes per bucket
//   for its length, and as many for each cached level.
// Differs from the authors' code in: the shorter row is hashed, as in the paper, instead of the longer; the first
//   levels are in shared memory, as in the paper, instead of none; a bucket has 128 places instead of 1,000, and a full
//   one passes ids on to the next one instead of writing behind its end, so that nothing is lost; blocks meet before
//   they clear their table for the next arc, so that they count right; sums of a block have 64 bits; arcs that close no
//   triangle take no table; the grid has as many blocks as run at once. Good where rows are short and many. The table
//   is built anew for every arc, and 32 buckets are few where the shorter row has hundreds of ids: then a look-up is a
//   scan.
#include "common/block_or_warp.cuh"
#include "common/block_sum.cuh"
#include "common/buckets.cuh"
#include "common/lists.cuh"
#include "common/occupancy.cuh"

#define ARCS_AT_ONCE 8u  // of a warp: few enough that heavy arcs side by side are shared out

// The room of a block: shared memory for its teams' tables, and global memory for those of all.
struct Room {
    u32* shared;
    u32* global;
    u32 buckets, cached, capacity;
};

// The table is empty if the arc closes no triangle: N+(v) is empty, or N+(u) has v alone.
__device__ __forceinline__ Intersection intersection_at(Arcs arcs, u64 arc) {
    const List of_tail = row_list(arcs.offsets, arcs.tails[arc]), of_head = row_list(arcs.offsets, arcs.heads[arc]);
    if (of_tail.length == 1) return {};
    return of_tail.length < of_head.length ? Intersection{of_head, of_tail} : Intersection{of_tail, of_head};
}

template <class Team>
__device__ __forceinline__ Buckets table_of(Room room) {
    u32* const asked = room.shared + threadIdx.x / Team::size() * (1 + room.cached) * room.buckets;
    u32* const far = room.global + u64(Team::number()) * (room.capacity - room.cached) * room.buckets;
    return {asked, asked + room.buckets, far, room.buckets, room.cached, room.capacity};
}

template <class Team>
__device__ __forceinline__ void intersect(const u32* heads, const Buckets& table, Intersection lists, Found* found) {
    for (u32 bucket = Team::rank(); bucket < table.count; bucket += Team::size()) table.asked[bucket] = 0;
    Team::meet();  // the buckets are empty
    for (u32 at = Team::rank(); at < lists.table.length; at += Team::size())
        insert(table, heads[lists.table.begin + at]);
    Team::meet();  // all are in their buckets
    u32 hits = 0, at = Team::rank();
    for (; at < lists.keys.length; at += Team::size()) hits += holds(table, heads[lists.keys.begin + at]);
    found->triangles += hits;
    found->tests += at / Team::size();  // of this thread: rank + k * size is behind k of them
    Team::meet();  // nobody reads the table any more
}

__device__ __forceinline__ List list_of_lane(List list, u32 lane) {
    return {__shfl_sync(ALL_LANES, list.begin, lane), __shfl_sync(ALL_LANES, list.length, lane)};
}

// Arcs [begin, begin + count), a few of them for each warp in turn; count is below 2^31.
extern "C" __global__ void __launch_bounds__(MAX_THREADS, FULL_BLOCKS)
count_by_warp(const offset_t* offsets, const u32* heads, const u32* tails, u32 buckets, u32 cached, u32 capacity,
              u32* places, u64 begin, u32 count, u64* found) {
    DYNAMIC_SHARED(u32, shared);
    const Buckets table = table_of<WarpTeam>({shared, places, buckets, cached, capacity});
    const u32 lane = WarpTeam::rank(), step = WarpTeam::count() * ARCS_AT_ONCE;
    Found sums = {0, 0};
    for (u32 first = WarpTeam::number() * ARCS_AT_ONCE; first < count; first += step) {
        Intersection lists = {};
        if (lane < ARCS_AT_ONCE && first + lane < count)
            lists = intersection_at({offsets, heads, tails}, begin + first + lane);
        for (u32 left = __ballot_sync(ALL_LANES, lists.table.length > 0); left > 0; left &= left - 1) {
            const u32 next = __ffs(left) - 1;
            const Intersection of_lane = {list_of_lane(lists.keys, next), list_of_lane(lists.table, next)};
            intersect<WarpTeam>(heads, table, of_lane, &sums);
        }
    }
    add_block_found(found, sums.triangles, sums.tests);
}

// Arcs [begin, begin + count), one for each block in turn.
extern "C" __global__ void __launch_bounds__(MAX_THREADS, FULL_BLOCKS)
count_by_block(const offset_t* offsets, const u32* heads, const u32* tails, u32 buckets, u32 cached, u32 capacity,
               u32* places, u64 begin, u32 count, u64* found) {
    DYNAMIC_SHARED(u32, shared);
    const Buckets table = table_of<BlockTeam>({shared, places, buckets, cached, capacity});
    Found sums = {0, 0};
    for (u32 at = BlockTeam::number(); at < count; at += BlockTeam::count()) {
        const Intersection lists = intersection_at({offsets, heads, tails}, begin + at);
        if (lists.table.length > 0) intersect<BlockTeam>(heads, table, lists, &sums);
    }
    add_block_found(found, sums.triangles, sums.tests);
}
