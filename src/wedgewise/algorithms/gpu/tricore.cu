// What: TriCore. For every arc u -> v the longer of N+(u) and N+(v) is a binary search tree, and the ids of the other
//   one, the keys, are searched for in it; the top levels of the tree are in shared memory.
// Paper: Y. Hu, H. Liu, H. H. Huang, "TriCore: Parallel triangle counting on GPUs", SC18, 2018, 171-182.
// Who does what: a warp per arc, a key per lane, neighbouring keys in neighbouring lanes. The warp copies every
//   (length / 2^LEVELS)-th id of the tree into shared memory; a lane first searches those, then the ids between two.
// Input: any oriented graph, rows ascending; tails[arc] is u.
// Output: triangles and keys searched for, added to found[0] and found[1].
// Memory: 4 bytes per arc of tails. Shared: 8 * 2^LEVELS bytes per warp, for 32 ids of two trees by default, and the
//   rows of 16 arcs.
// Differs from the authors' code in: no barrier of the block inside the loop over arcs, where theirs is undefined as
//   soon as warps of a block have different numbers of arcs; a warp loads the rows' ends of 16 arcs at once, and the
//   next keys before it searches for these; arcs whose head has no row are skipped, where theirs caches a tree for no
//   key; a tree of at most 2^LEVELS ids is read from global memory once; the number of levels is free. Good where rows
//   are long: many keys for each tree. On rows of a few ids most lanes have no key.
#include "common/block_sum.cuh"
#include "common/lists.cuh"
#include "common/occupancy.cuh"
#include "common/search.cuh"

#ifndef LEVELS
#define LEVELS 5
#endif
#define SAMPLES (1u << LEVELS)
#define ROUND_ARCS (WARP / 2)  // half of the lanes load their tails' rows, half their heads'

// Samples of the trees of this arc and of the one before, which other lanes may still search.
struct WarpMemory {
    List rows[WARP];
    u32 samples[2][SAMPLES];
};

// Lane i of the first half has the row of the tail of arc first + i, of the second half that of the head.
__device__ __forceinline__ List row_of_lane(Arcs arcs, u64 first, u64 end) {
    const u32 lane = threadIdx.x % WARP;
    const u64 arc = first + lane % ROUND_ARCS;
    if (arc >= end) return {0, 0};
    return row_list(arcs.offsets, lane < ROUND_ARCS ? arcs.tails[arc] : arcs.heads[arc]);
}

// Where sample i of a tree is; sample SAMPLES would be behind its end.
__device__ __forceinline__ u32 place_of(u32 sample, u32 length) { return u32(u64(sample) * length >> LEVELS); }

__device__ __forceinline__ bool tree_holds(const u32* samples, const u32* tree, u32 length, u32 wanted) {
    u32 at = 0;  // the last sample that is not above wanted, or the first one
#pragma unroll
    for (u32 step = SAMPLES / 2; step > 0; step /= 2)
        if (samples[at + step] <= wanted) at += step;
    return samples[at] == wanted || holds(tree, place_of(at, length) + 1, place_of(at + 1, length), wanted);
}

// How many of its keys this lane finds in the tree; all lanes come here together.
__device__ __forceinline__ u32 search_tree(const u32* tree, u32 length, const u32* keys, u32 key_count, u32* samples) {
    const u32 lane = threadIdx.x % WARP;
    u32 next = lane < key_count ? keys[lane] : 0, found = 0;
    for (u32 sample = lane; sample < SAMPLES; sample += WARP) samples[sample] = tree[place_of(sample, length)];
    __syncwarp();  // all samples are there, and the other samples and rows are free: nobody searches before this
    for (u32 key = lane; key < key_count; key += WARP) {
        const u32 wanted = next;
        if (key + WARP < key_count) next = keys[key + WARP];
        found += tree_holds(samples, tree, length, wanted);
    }
    return found;
}

// Arcs [begin, end).
extern "C" __global__ void __launch_bounds__(MAX_THREADS, FULL_BLOCKS)
count_arcs(const offset_t* offsets, const u32* heads, const u32* tails, u64 begin, u64 end, u64* found) {
    DYNAMIC_SHARED(WarpMemory, memories);
    const u32 lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    WarpMemory& memory = memories[threadIdx.x / WARP];
    u64 triangles = 0, tests = 0;
    u32 arcs_before = 0;
    for (u64 first = begin + (u64(blockIdx.x) * warps + threadIdx.x / WARP) * ROUND_ARCS; first < end;
         first += u64(gridDim.x) * warps * ROUND_ARCS) {
        const List row = row_of_lane({offsets, heads, tails}, first, end);
        memory.rows[lane] = row;
        const u32 filled = __ballot_sync(ALL_LANES, row.length > 0);
        __syncwarp();  // all rows are there
        for (u32 waiting = filled & filled >> ROUND_ARCS; waiting != 0; waiting &= waiting - 1) {
            const u32 arc = u32(__ffs(waiting)) - 1;
            const List out = memory.rows[arc], in = memory.rows[arc + ROUND_ARCS];
            const bool is_longer = out.length >= in.length;
            const List tree = is_longer ? out : in, keys = is_longer ? in : out;
            u32* const samples = memory.samples[arcs_before++ % 2];
            triangles += search_tree(heads + tree.begin, tree.length, heads + keys.begin, keys.length, samples);
            if (lane == 0) tests += keys.length;
        }
    }
    add_block_found(found, triangles, tests);
}
