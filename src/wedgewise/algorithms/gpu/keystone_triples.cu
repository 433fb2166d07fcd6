// What: counts the triangles of a task whose middle vertices b and last ones c are near, pivoting on b. 32 consecutive
//   rows b of block jk are a group; a table in shared memory has a word for every near column c, with a bit for each
//   pivot of the group that has an arc to c. Of a row a with pivots in the group, the near ids in block ik are streamed
//   and looked up once for all of them: popcount(table[c] & a's pivots) triangles.
// Paper: ours; what keystone.cu does near the hubs of a whole graph, without sorting.
// Who does what: measure_rows, place_items: 8 threads per listed row, a warp per large one; a block has the same rows
//   in both. reserve_items: a thread per group. count_groups: a block holds a table and streams a chunk of items after
//   the other; few threads take an item together, 8 ids in one load.
// Input: blocks ij, ik, jk in any numbering; the rows that can begin triangles.
// Output: triangles and tests, added to found[0] and found[1].
// Memory: 16 bytes per item, of which there are at most as many as arcs in ij; 2 per arc of ik, and 16 per row of
//   padding; 8 per group, and 4 for every block of a launch where groups are few. Shared: 4 bytes per near column.
// Limits: one look-up per item and id, 2 bytes of it from L2. On Kronecker 20 in 4 rectilinear parts the tasks in which
//   everything is near have 0.75 G look-ups in 20 M items; one per a -> b and a -> c would be 1.6 G, one per a -> b and
//   b -> c 4.1 G, and keystone.cu has 0.81 G on the whole graph. So tables lose nothing by blocks. What is lost is the
//   making of items, about 24 bytes for each arc of ij in every task: a tenth of a millisecond for 11 M arcs.
// Differs from the authors' code in: nothing, there is no other.
#include "common/block_or_warp.cuh"
#include "common/block_sum.cuh"
#include "common/keystone_stream.cuh"
#include "common/keystone_triples.cuh"

#define ROW_LANES 8u
#define CHUNKS_PER_BLOCK 4u
#define LEAST_CHUNK 128u

// What the kernels of a task tell each other; all zero before the first.
struct Tally {
    u32 descends;  // block jk, on the diagonal, has an arc to a lower number
    u32 items;     // in all groups
};

// Where the ids of row a begin: at a load behind all ids before them, each row padded to whole loads.
__device__ __forceinline__ u32 first_load(const offset_t* offsets, u32 a) { return u32(offsets[a] / IDS_PER_LOAD) + a; }

__device__ __forceinline__ u32 loads_of(Arcs ids) { return u32(ids.end - ids.begin + IDS_PER_LOAD - 1) / IDS_PER_LOAD; }

// Calls visit(row, lane, lanes) with every listed row; those of a block depend on the sizes of block and grid alone.
template <class Visit>
__device__ __forceinline__ void for_each_row(Listed rows, Visit visit) {
    const u32 large = large_of_launch(rows), small = small_of_launch(rows);
    for (u64 number = WarpTeam::number(); number < large; number += WarpTeam::count())
        visit(large_row(rows, u32(number)), threadIdx.x % WARP, WARP);
    const u64 teams = u64(gridDim.x) * (blockDim.x / ROW_LANES);
    for (u64 number = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / ROW_LANES; number < small; number += teams)
        visit(small_row(rows, u32(number)), threadIdx.x % ROW_LANES, ROW_LANES);
}

// Calls make(arc, group) with the first arc of a row into every group that it has pivots in.
template <class Make>
__device__ __forceinline__ void for_each_item(Block ij, Arcs arcs, u32 first_pivot, u32 lane, u32 lanes, Make make) {
    for (offset_t arc = arcs.begin + lane; arc < arcs.end; arc += lanes) {
        const u32 group = (ij.heads[arc] - first_pivot) / NEAR_PIVOTS;
        if (arc == arcs.begin || (ij.heads[arc - 1] - first_pivot) / NEAR_PIVOTS != group) make(arc, group);
    }
}

// Copies the near ids of the listed rows of block ik and counts the items of every group. Few groups are counted block
// by block: block_firsts[x][g] items of group g come before those of block x. Finds where near columns begin in the
// rows of pivots and, on the diagonal, arcs downwards.
extern "C" __global__ void measure_rows(const offset_t* ij_offsets, const u32* ij_heads, const offset_t* ik_offsets,
                                        const u32* ik_heads, const offset_t* jk_offsets, const u32* jk_heads,
                                        const u32* places, const u32* lengths, u32 count, u32 launch, u32 launches,
                                        u32* taken, u32 rows_j, u32 columns, u32 first_pivot, u32 first_column,
                                        u32 groups, u32 is_diagonal, u32 has_few, offset_t* far_ends, u16* ids,
                                        u32* group_items, u32* block_firsts, u32* tally) {
    DYNAMIC_SHARED(u32, block_items);
    const Block ij = {ij_offsets, ij_heads}, ik = {ik_offsets, ik_heads}, jk = {jk_offsets, jk_heads};
    u32* const counters = has_few ? block_items : group_items;
    for (u32 group = threadIdx.x; has_few && group < groups; group += blockDim.x) block_items[group] = 0;
    __syncthreads();
    for_each_row({places, lengths, count, launch, launches}, [&](u32 a, u32 lane, u32 lanes) {
        const Arcs heads = near_part(ik, a, first_column);
        if (heads.begin == heads.end) return;
        for_each_item(ij, near_part(ij, a, first_pivot), first_pivot, lane, lanes,
                      [&](offset_t, u32 group) { atomicAdd(counters + group, 1u); });
        u16* const copied = ids + u64(first_load(ik_offsets, a)) * IDS_PER_LOAD;
        const u32 length = u32(heads.end - heads.begin);
        for (u32 place = lane; place < loads_of(heads) * IDS_PER_LOAD; place += lanes)
            copied[place] = u16((place < length ? ik_heads[heads.begin + place] : columns) - first_column);
    });
    __syncthreads();  // all items of the block are counted
    for (u32 group = threadIdx.x; has_few && group < groups; group += blockDim.x)
        block_firsts[u64(blockIdx.x) * groups + group] = atomicAdd(group_items + group, block_items[group]);
    const u64 first = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    for (u64 b = first_pivot + first; b < rows_j; b += u64(gridDim.x) * blockDim.x) {
        const Arcs row = arcs_of(jk, u32(b));
        if (first_column > 0) far_ends[b - first_pivot] = first_not_below(jk_heads, row.begin, row.end, first_column);
        if (is_diagonal && row.begin < row.end && jk_heads[row.begin] <= b)
            atomicOr(&reinterpret_cast<Tally*>(tally)->descends, 1u);
    }
}

// Turns the number of items of every group into the place of its first one; groups lie side by side in any order.
extern "C" __global__ void __launch_bounds__(1024) reserve_items(u32 groups, u32* group_items, u32* group_ends, u32* tally) {
    __shared__ u64 warp_sums[MOST_WARPS];
    __shared__ u32 block_first;
    for (u32 first = blockIdx.x * blockDim.x; first < groups; first += gridDim.x * blockDim.x) {
        const u32 group = first + threadIdx.x, items = group < groups ? group_items[group] : 0;
        u32 total;
        const u32 before = BlockTeam::sum_before(items, warp_sums, &total);
        if (threadIdx.x == 0) block_first = atomicAdd(&reinterpret_cast<Tally*>(tally)->items, total);
        __syncthreads();  // the places of these groups are known, and warp_sums is free again
        if (group < groups) {
            group_items[group] = block_first + before;
            group_ends[group] = block_first + before + items;
        }
        __syncthreads();  // to everyone
    }
}

// The pivots of the group of an arc that a row has from there on, as bits.
__device__ __forceinline__ u32 pivots_from(Block ij, offset_t arc, offset_t end, u32 first) {
    u32 pivots = 0;
    for (; arc < end && ij.heads[arc] - first < NEAR_PIVOTS; ++arc) pivots |= 1u << (ij.heads[arc] - first);
    return pivots;
}

// Writes the items, those of a group side by side in any order. Where the arcs of the diagonal go upwards, ids up to
// the first pivot are left out: no pivot has them.
extern "C" __global__ void place_items(const offset_t* ij_offsets, const u32* ij_heads, const offset_t* ik_offsets,
                                       const u32* ik_heads, const u32* places, const u32* lengths, u32 count,
                                       u32 launch, u32 launches, u32* taken, u32 first_pivot, u32 first_column,
                                       u32 groups, u32 is_diagonal, u32 has_few, u32* group_items,
                                       const u32* block_firsts, const u32* tally, uint4* items) {
    DYNAMIC_SHARED(u32, block_places);
    const Block ij = {ij_offsets, ij_heads}, ik = {ik_offsets, ik_heads};
    const bool skips = is_diagonal && reinterpret_cast<const Tally*>(tally)->descends == 0;
    u32* const cursors = has_few ? block_places : group_items;
    for (u32 group = threadIdx.x; has_few && group < groups; group += blockDim.x)
        block_places[group] = group_items[group] + block_firsts[u64(blockIdx.x) * groups + group];
    __syncthreads();
    for_each_row({places, lengths, count, launch, launches}, [&](u32 a, u32 lane, u32 lanes) {
        const Arcs heads = near_part(ik, a, first_column), arcs = near_part(ij, a, first_pivot);
        if (heads.begin == heads.end) return;
        const u32 first = first_load(ik_offsets, a), end = first + loads_of(heads);
        for_each_item(ij, arcs, first_pivot, lane, lanes, [&](offset_t arc, u32 group) {
            const u32 skipped = skips && arc > heads.begin ? u32(arc - heads.begin) / IDS_PER_LOAD : 0;
            const u32 pivots = pivots_from(ij, arc, arcs.end, first_pivot + group * NEAR_PIVOTS);
            items[atomicAdd(cursors + group, 1u)] = make_uint4(first + skipped, end, pivots, group);
        });
    });
}

// Sets a bit in the words of a row's columns, which are counted from `first` on; four loads are under way at once.
__device__ __forceinline__ void enter_row(const u32* heads, Arcs arcs, u32 lanes, u32 first, u32 bit, u32* words) {
    offset_t arc = arcs.begin + threadIdx.x % lanes;
    for (; arc + 3 * lanes < arcs.end; arc += 4 * lanes) {
        const u32 columns[4] = {heads[arc], heads[arc + lanes], heads[arc + 2 * lanes], heads[arc + 3 * lanes]};
        for (u32 column : columns) atomicOr(words + (column - first), bit);
    }
    for (; arc < arcs.end; arc += lanes) atomicOr(words + (heads[arc] - first), bit);
}

// The table of a group: as many threads for each pivot as a block has warps.
__device__ __forceinline__ void enter_group(Block jk, Near near, u32 rows, u32 columns, u32 group, uint4* table) {
    for (u32 four = threadIdx.x; four <= (columns - near.first_column) / 4; four += blockDim.x)
        table[four] = make_uint4(0, 0, 0, 0);
    __syncthreads();  // the table is empty
    const u32 lanes = blockDim.x / NEAR_PIVOTS, pivot = threadIdx.x / lanes;
    const u64 b = u64(near.first_pivot) + group * NEAR_PIVOTS + pivot;
    if (b < rows) {
        const offset_t begin = near.first_column > 0 ? near.far_ends[b - near.first_pivot] : jk.offsets[b];
        const Arcs arcs = {begin, jk.offsets[b + 1]};
        enter_row(jk.heads, arcs, lanes, near.first_column, 1u << pivot, reinterpret_cast<u32*>(table));
    }
    __syncthreads();  // the table is there
}

// Chunks of about equally many items; of several launches, each has its own range of them and its own counter.
extern "C" __global__ void __launch_bounds__(1024)
    count_groups(const offset_t* jk_offsets, const u32* jk_heads, u32 rows_j, u32 columns, u32 first_pivot,
                 u32 first_column, const offset_t* far_ends, const uint4* ids, const uint4* items,
                 const u32* group_ends, const u32* tally, u32 launch, u32 launches, u32* taken, u64* found) {
    DYNAMIC_SHARED(uint4, table);
    __shared__ u32 chunk;
    const Near near = {first_pivot, first_column, far_ends};
    const u32 total = reinterpret_cast<const Tally*>(tally)->items, chunks = gridDim.x * CHUNKS_PER_BLOCK;
    const u32 chunk_items = max(LEAST_CHUNK, (total - 1) / (chunks * launches) + 1);
    u64 triangles = 0, tests = 0;
    while (true) {
        if (threadIdx.x == 0) chunk = atomicAdd(taken, 1u);
        __syncthreads();  // the chunk is known
        const u64 first = (u64(launch) * chunks + chunk) * chunk_items;
        if (chunk >= chunks || first >= total) break;
        const u32 stop = u32(min(first + chunk_items, u64(total)));
        for (u32 at = u32(first); at < stop;) {
            const u32 group = items[at].w, next = min(group_ends[group], stop);
            enter_group({jk_offsets, jk_heads}, near, rows_j, columns, group, table);
            triangles += stream_all(ids, items, at, next, reinterpret_cast<const u32*>(table), &tests);
            __syncthreads();  // nobody reads the table or the chunk any more
            at = next;
        }
    }
    add_block_found(found, triangles, tests);
}
