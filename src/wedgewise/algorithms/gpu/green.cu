// What: merges the sorted rows of both ends of every arc; several threads take equal stretches of one merge path.
// Paper: O. Green, P. Yalamanchili, L. M. Munguia, "Fast Triangle Counting on the GPU", Workshop on Irregular
//   Applications: Architectures & Algorithms, 2014; the merge path is that of O. Green, R. McColl, D. A. Bader, "GPU
//   merge path: a GPU merging algorithm", ICS 2012, 331-340.
// Who does what: a group of threads per arc u -> v. Each finds by a binary search on its diagonal where its stretch of
//   the merge of N+(u) and N+(v) begins, and walks it; all stretches have the same number of steps. A block takes
//   consecutive arcs, its groups one at a time.
// Input: any oriented graph, rows ascending; tails[arc] is u.
// Output: triangles and steps of the merges, added to found[0] and found[1].
// Memory: 4 bytes per arc of tails.
// Differs from the authors' code in: blocks take equally many arcs instead of equally many vertices, and not fewer than
//   they have groups, so that none is idle; of equal ids the tail's comes first on the path, so that no triangle is
//   found by two stretches, where theirs corrects that through shared memory with no barrier between. Good where all
//   rows are long and of like lengths; short rows leave most of the group without a step.
#include "common/block_sum.cuh"
#include "common/merge_path.cuh"
#include "common/occupancy.cuh"

// Block i takes the block_arcs arcs from begin + i * block_arcs on, as far as end; groups of 2^log_threads threads.
extern "C" __global__ void __launch_bounds__(MAX_THREADS, FULL_BLOCKS)
count_arcs(const offset_t* offsets, const u32* heads, const u32* tails, u32 log_threads, u32 block_arcs, u64 begin,
           u64 end, u64* found) {
    const u32 groups = blockDim.x >> log_threads, group = threadIdx.x >> log_threads;
    const u32 part = threadIdx.x - (group << log_threads);
    const u64 first = begin + u64(blockIdx.x) * block_arcs, last = min(first + block_arcs, end);
    u64 triangles = 0, steps = 0;
    for (u64 arc = first + group; arc < last; arc += groups) {
        const u32 u = tails[arc], v = heads[arc];
        const offset_t u_begin = offsets[u], v_begin = offsets[v];
        const Ids u_row = {heads + u_begin, u32(offsets[u + 1] - u_begin)};
        const Ids v_row = {heads + v_begin, u32(offsets[v + 1] - v_begin)};
        if (v_row.length == 0) continue;
        const Common common = merge_part(u_row, v_row, part, log_threads);
        triangles += common.ids;
        steps += common.tests;
    }
    add_block_found(found, triangles, steps);
}
