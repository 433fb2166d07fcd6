#include "common/block_sum.cuh"
#include "common/triples.cuh"

// The words of a block in the table of a batch: where its arrays are, how long, and what was made of it.
#define BLOCK_WORDS 6u
#define BLOCK_OFFSETS 0u
#define BLOCK_HEADS 1u
#define BLOCK_ROWS 2u
#define BLOCK_COLUMNS 3u
#define BLOCK_ITEMS 4u
#define BLOCK_GROUPS 5u

// The words of a task: the numbers of its blocks, its share of the rows, and from where on numbers are near.
#define TASK_WORDS 6u

// The words of a unit: the first of so many tasks, the first group and the step to the next, which of how many equal
// parts.
#define UNIT_WORDS 6u
#define FOUND_WORDS 3u

// A batch as the host hands it over: of `units`, `count` are this launch's, of which `taken` were taken.
struct Batch {
    const u64* blocks;
    const u32* tasks;
    u32 shares;
    const u32* units;
    u32 count;
    u32* taken;
    u64* found;
};

struct Unit {
    u32 task, tasks, group, step, part, parts;
};

struct Task {
    Triple blocks;
    u32 rows_i, rows_j, columns, share, shares, first_pivot, first_column;
};

__device__ __forceinline__ const u64* words_of(const u64* blocks, u32 number) {
    return blocks + u64(number) * BLOCK_WORDS;
}

__device__ __forceinline__ Block block_at(const u64* words) {
    return {reinterpret_cast<const offset_t*>(words[BLOCK_OFFSETS]), reinterpret_cast<const u32*>(words[BLOCK_HEADS])};
}

__device__ __forceinline__ Task task_at(const Batch& batch, u32 number) {
    const u32* const task = batch.tasks + u64(number) * TASK_WORDS;
    const u64 *const ij = words_of(batch.blocks, task[0]), *const ik = words_of(batch.blocks, task[1]),
              *const jk = words_of(batch.blocks, task[2]);
    return {{block_at(ij), block_at(ik), block_at(jk)},
            u32(ij[BLOCK_ROWS]), u32(jk[BLOCK_ROWS]), u32(jk[BLOCK_COLUMNS]), task[3], batch.shares, task[4], task[5]};
}

// Calls visit(unit), first with that of the block's number, then with units from the counter; all threads of the block
// have the same one, and meet in between.
template <class Visit>
__device__ __forceinline__ void for_each_unit(const Batch& batch, Visit visit) {
    __shared__ u32 next;
    if (threadIdx.x == 0) next = blockIdx.x;
    while (true) {
        __syncthreads();  // the unit is known
        const u32 number = next;
        if (number >= batch.count) return;
        const u32* const words = batch.units + u64(number) * UNIT_WORDS;
        visit(Unit{words[0], words[1], words[2], words[3], words[4], words[5]});
        __syncthreads();  // nobody is at work on the unit any more
        if (threadIdx.x == 0) next = gridDim.x + atomicAdd(batch.taken, 1u);
    }
}

// The same where a unit is of one task: visit(unit, task, &sums); what it found, and the ticks that it took, are added
// to those of the task.
template <class Visit>
__device__ __forceinline__ void for_each_task(const Batch& batch, Visit visit) {
    for_each_unit(batch, [&](Unit unit) {
        const long long since = clock64();
        u64* const found = batch.found + u64(unit.task) * FOUND_WORDS;
        Found sums = {0, 0};
        visit(unit, task_at(batch, unit.task), &sums);
        add_block_found(found, sums.triangles, sums.tests);
        if (threadIdx.x == 0) atomicAdd(found + 2, u64(clock64() - since));
    });
}
