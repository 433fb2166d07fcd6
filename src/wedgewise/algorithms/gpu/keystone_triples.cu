// What: counts the triangles of tasks whose middle vertices b and last ones c are near, pivoting on b. 32 consecutive
//   rows b of block jk are a group; a table in shared memory has a word for every near column c, with a bit for each
//   pivot of the group that has an arc to c. Of a row a with pivots in the group, the near ids in block ik are looked up
//   once for all of them: popcount(table[c] & a's pivots) triangles.
// Paper: ours; what keystone.cu does near the hubs of a whole graph.
// Who does what: the items of a block ij, a row a with its pivots in a group each, are made once when it comes to the
//   device, by 8 threads for a row, and serve all tasks with that block: clear_groups, count_items, reserve_items,
//   place_items. count_groups: a block takes units from a counter, a group of a block jk, or some that are far from each
//   other, with all tasks of the batch that look up in that block; it makes the group's table and goes through the items
//   of one task after the other, a thread for an item with few ids, 8 for one with many; warps take 32 items in turn.
// Input: a batch of tasks in any numbering; where their blocks are.
// Output: triangles, tests and clock ticks of every task, added to found[task]; ticks are those of a block's first warp,
//   tables count for the first task of a unit.
// Memory: 8 bytes per arc of a block for items, 4 per group; while they are made, 4 for every group and block of a
//   launch where groups are few. Shared: 4 bytes per near column.
// Limits: one look-up per item and id. On Kronecker 20 in 4 rectilinear parts the tasks in which everything is near have
//   0.75 G look-ups in 20 M items; one per a -> b and a -> c would be 1.6 G, one per a -> b and b -> c 4.1 G. Where
//   arcs ascend on the diagonal, ids up to the first pivot are looked up for nothing. An H200 looks up about 300 G ids
//   a second there; before units had groups far from each other, one with the last groups of a part took most of the time.
// Differs from the authors' code in: nothing, there is no other.
#include "common/keystone_triples.cuh"
#include "common/block_or_warp.cuh"

#define PIVOTS 32u
#define ROW_LANES 8u
#define SHORT_ROW 8u    // ids that a thread looks up by itself
#define ITEM_LANES 8u   // threads that look up those of a longer row
#define IDS_AT_ONCE 8u  // that a thread has loaded before it looks any of them up
#define NO_ID 0xFFFFFFFFu

__device__ __forceinline__ uint2* items_of(const u64* words) { return reinterpret_cast<uint2*>(words[BLOCK_ITEMS]); }

// Items of group g are [groups[g], groups[g + 1]).
__device__ __forceinline__ u32* groups_of(const u64* words) { return reinterpret_cast<u32*>(words[BLOCK_GROUPS]); }

__device__ __forceinline__ u32 group_count(const u64* words) { return u32((words[BLOCK_COLUMNS] + PIVOTS - 1) / PIVOTS); }

// A block for which items are made, by launches of `parts` blocks of threads each; `first` of them come before.
struct Making {
    const u64* words;
    u32 first, part, parts;
    bool has_few;  // groups are counted in shared memory, and by every block of threads for itself
    u32* firsts;   // of its part, an entry for each group
};

// The words of a unit: the number of the block, where firsts of all its parts begin, the part, parts.
__device__ __forceinline__ Making making_of(const u64* blocks, const u32* units, u32 number, u32 few, u32* firsts) {
    const u32* const unit = units + u64(number) * UNIT_WORDS;
    const u64* const words = words_of(blocks, unit[0]);
    const u32 groups = group_count(words);
    u32* const of_block = firsts + unit[2];
    return {words, unit[1], unit[4], unit[5], groups <= few, of_block + u64(unit[4]) * groups};
}

// Calls visit(arc, end, row, group) with the first arc of a row into every group.
template <class Visit>
__device__ __forceinline__ void for_each_item(const Making& making, Visit visit) {
    const Block ij = block_at(making.words);
    const u64 rows = making.words[BLOCK_ROWS], teams = blockDim.x / ROW_LANES;
    for (u64 a = making.part * teams + threadIdx.x / ROW_LANES; a < rows; a += making.parts * teams) {
        const Arcs arcs = arcs_of(ij, u32(a));
        for (offset_t arc = arcs.begin + threadIdx.x % ROW_LANES; arc < arcs.end; arc += ROW_LANES) {
            const u32 group = ij.heads[arc] / PIVOTS;
            if (arc == arcs.begin || ij.heads[arc - 1] / PIVOTS != group) visit(arc, arcs.end, u32(a), group);
        }
    }
}

extern "C" __global__ void clear_groups(const u64* blocks, const u32* units, u32 few, u32* firsts) {
    const Making making = making_of(blocks, units, blockIdx.x, few, firsts);
    const u32 groups = group_count(making.words);
    for (u64 group = u64(making.part) * blockDim.x + threadIdx.x; group <= groups; group += u64(making.parts) * blockDim.x)
        groups_of(making.words)[group] = 0;
}

// Counts the items of every group g in groups[g + 1]; few groups block by block, with what comes before each in firsts.
extern "C" __global__ void count_items(const u64* blocks, const u32* units, u32 few, u32* firsts) {
    DYNAMIC_SHARED(u32, block_items);
    const Making making = making_of(blocks, units, blockIdx.x, few, firsts);
    const u32 groups = group_count(making.words);
    u32* const counters = making.has_few ? block_items : groups_of(making.words) + 1;
    for (u32 group = threadIdx.x; making.has_few && group < groups; group += blockDim.x) block_items[group] = 0;
    __syncthreads();  // nothing is counted
    for_each_item(making, [&](offset_t, offset_t, u32, u32 group) { atomicAdd(counters + group, 1u); });
    __syncthreads();  // all items of the block are counted
    for (u32 group = threadIdx.x; making.has_few && group < groups; group += blockDim.x)
        making.firsts[group] = atomicAdd(groups_of(making.words) + 1 + group, block_items[group]);
}

// Says where the items of every group begin, in firsts where groups are few, else in groups[g + 1], which place_items
// moves to their ends. Of the parts of a block, the first one does.
extern "C" __global__ void __launch_bounds__(1024) reserve_items(const u64* blocks, const u32* units, u32 few, u32* firsts) {
    __shared__ u64 warp_sums[32];
    const Making making = making_of(blocks, units, blockIdx.x, few, firsts);
    if (making.part > 0) return;
    const u32 groups = group_count(making.words);
    u32* const ends = groups_of(making.words) + 1;
    u32 reserved = 0;
    for (u32 first = 0; first < groups; first += blockDim.x) {
        const u32 group = first + threadIdx.x, items = group < groups ? ends[group] : 0;
        u32 total;
        const u32 begin = reserved + BlockTeam::sum_before(items, warp_sums, &total);
        if (group < groups) {
            ends[group] = making.has_few ? begin + items : begin;
            for (u32 part = 0; making.has_few && part < making.parts; ++part)
                making.firsts[u64(part) * groups + group] += begin;
        }
        reserved += total;
        __syncthreads();  // warp_sums is free again
    }
}

// The pivots of the group of an arc that a row has from there on, as bits.
__device__ __forceinline__ u32 pivots_from(const u32* heads, offset_t arc, offset_t end, u32 group) {
    u32 pivots = 0;
    for (; arc < end && heads[arc] / PIVOTS == group; ++arc) pivots |= 1u << heads[arc] % PIVOTS;
    return pivots;
}

// Writes the items, those of a group side by side in any order.
extern "C" __global__ void place_items(const u64* blocks, const u32* units, u32 few, u32* firsts) {
    DYNAMIC_SHARED(u32, block_places);
    const Making making = making_of(blocks, units, blockIdx.x, few, firsts);
    const u32 groups = group_count(making.words);
    u32* const cursors = making.has_few ? block_places : groups_of(making.words) + 1;
    for (u32 group = threadIdx.x; making.has_few && group < groups; group += blockDim.x)
        block_places[group] = making.firsts[group];
    __syncthreads();  // the places are known
    const Block ij = block_at(making.words);
    uint2* const items = items_of(making.words);
    for_each_item(making, [&](offset_t arc, offset_t end, u32 a, u32 group) {
        items[atomicAdd(cursors + group, 1u)] = make_uint2(a, pivots_from(ij.heads, arc, end, group));
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
__device__ __forceinline__ void enter_group(const Task& task, u32 group, u32* table) {
    for (u32 four = threadIdx.x; four < (task.columns - task.first_column + 3) / 4; four += blockDim.x)
        reinterpret_cast<uint4*>(table)[four] = make_uint4(0, 0, 0, 0);
    __syncthreads();  // the table is empty
    const u32 lanes = blockDim.x / PIVOTS, pivot = threadIdx.x / lanes;
    const u64 b = u64(group) * PIVOTS + pivot;
    if (b < task.rows_j)
        enter_row(task.blocks.jk.heads, near_part(task.blocks.jk, u32(b), task.first_column), lanes, task.first_column,
                  1u << pivot, table);
    __syncthreads();  // the table is there
}

// Looks up the ids of a row, every LANES-th; as many loads are under way at once as the row has ids for.
template <u32 LANES>
__device__ __forceinline__ u32 look_up_row(const u32* heads, Arcs row, u32 first, const u32* table, u32 pivots) {
    u32 hits = 0;
    for (offset_t arc = row.begin + threadIdx.x % LANES; arc < row.end; arc += LANES * IDS_AT_ONCE) {
        u32 ids[IDS_AT_ONCE];
#pragma unroll
        for (u32 number = 0; number < IDS_AT_ONCE; ++number)
            ids[number] = arc + number * LANES < row.end ? heads[arc + number * LANES] : NO_ID;
#pragma unroll
        for (u32 number = 0; number < IDS_AT_ONCE; ++number)
            if (ids[number] != NO_ID) hits += __popc(table[ids[number] - first] & pivots);
    }
    return hits;
}

// Looks up the ids of the items [begin, end), `stride` after each 32 of them, those of this warp.
__device__ __forceinline__ void look_up_items(const Task& task, const uint2* items, u64 begin, u32 end, u64 stride,
                                              const u32* table, Found* found) {
    const Block ik = task.blocks.ik;
    const u32 lane = threadIdx.x % WARP, column = task.first_column;
    for (u64 first = begin; first < end; first += stride) {
        const uint2 item = end - first > lane ? items[first + lane] : make_uint2(0, 0);
        Arcs row = {0, 0};
        if (item.y != 0 && item.x % task.shares == task.share) row = near_part(ik, item.x, column);
        found->tests += row.end - row.begin;
        const bool is_short = row.end - row.begin <= SHORT_ROW;
        if (is_short) found->triangles += look_up_row<1>(ik.heads, row, column, table, item.y);
        const u32 long_rows = __ballot_sync(ALL_LANES, !is_short);
        for (u32 of = lane / ITEM_LANES; of < WARP; of += WARP / ITEM_LANES) {
            if ((long_rows >> (of & ~(WARP / ITEM_LANES - 1)) & ((1u << WARP / ITEM_LANES) - 1)) == 0) continue;
            const Arcs other = {__shfl_sync(ALL_LANES, row.begin, of), __shfl_sync(ALL_LANES, row.end, of)};
            const u32 pivots = __shfl_sync(ALL_LANES, item.y, of);
            if (long_rows >> of & 1) found->triangles += look_up_row<ITEM_LANES>(ik.heads, other, column, table, pivots);
        }
    }
}

// A warp adds what its lanes found.
__device__ __forceinline__ void add_warp_found(u64* found, Found sums) {
    const u64 of_warp = warp_sums(sums.triangles, sums.tests);
    const u32 lane = threadIdx.x % WARP;
    if (lane % (WARP / 2) == 0 && of_warp > 0) atomicAdd(found + (lane > 0), of_warp);
}

// Tasks of a unit have one block jk, and the same numbers near.
extern "C" __global__ void __launch_bounds__(1024)
    count_groups(const u64* blocks, const u32* tasks, u32 shares, const u32* units, u32 count, u32* taken, u64* found) {
    DYNAMIC_SHARED(u32, table);
    const Batch batch = {blocks, tasks, shares, units, count, taken, found};
    const u32 warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for_each_unit(batch, [&](Unit unit) {
        const u32 mine = unit.part * warps + warp, stride = unit.parts * warps;
        long long since = clock64();
        const u64 groups_end = (u64(task_at(batch, unit.task).rows_j) + PIVOTS - 1) / PIVOTS;
        for (u64 group = unit.group; group < groups_end; group += unit.step) {
            __syncthreads();  // nobody reads the table any more
            enter_group(task_at(batch, unit.task), u32(group), table);
            u32 turn = mine;  // the first 32 items of the next task that are this warp's: warps take them in turn
            for (u32 number = unit.task; number < unit.task + unit.tasks; ++number) {
                const Task task = task_at(batch, number);
                const u64* const words = words_of(blocks, tasks[u64(number) * TASK_WORDS]);
                const u32* const groups = groups_of(words);
                const u32 begin = groups[group], end = groups[group + 1], rounds = (end - begin + WARP - 1) / WARP;
                if (turn < rounds) {
                    Found sums = {0, 0};
                    look_up_items(task, items_of(words), begin + turn * WARP, end, stride * WARP, table, &sums);
                    add_warp_found(found + u64(number) * FOUND_WORDS, sums);
                }
                turn = (turn + stride - rounds % stride) % stride;
                if (threadIdx.x == 0) {
                    const long long now = clock64();
                    atomicAdd(found + u64(number) * FOUND_WORDS + 2, u64(now - since));
                    since = now;
                }
            }
        }
    });
}
