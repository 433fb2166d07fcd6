#include "common/batch.cuh"
#include "common/block_or_warp.cuh"

#ifndef MAX_LISTED
#define MAX_LISTED 2048u  // twice as many as a block has threads
#endif

// Rows of a unit that can begin triangles, by class, in shared memory: large ones fill places from the front, small ones
// from the back.
struct Listed {
    u32* places;
    u32* lengths;  // of both, and how many small ones were taken
};

// Rows with more arcs are large.
struct Most {
    u32 middles, ends;
};

__device__ __forceinline__ u32 large_row(Listed listed, u32 number) { return listed.places[number]; }

__device__ __forceinline__ u32 small_row(Listed listed, u32 number) { return listed.places[MAX_LISTED - 1 - number]; }

// The first of so many small rows that a warp takes.
__device__ __forceinline__ u32 take_small(Listed listed, u32 rows) {
    const u32 first = threadIdx.x % WARP == 0 ? atomicAdd(listed.lengths + 2, rows) : 0;
    return __shfl_sync(ALL_LANES, first, 0);
}

// Calls visit(large, small), with how many rows are listed of both classes, whenever places are used up and at the end.
// Row r of the share is row share + r * shares of part i; a unit has every parts-th stretch of as many as threads.
template <class Visit>
__device__ __forceinline__ void list_rows(const Task& task, const Unit& unit, Most most, Listed listed, Visit visit) {
    const u64 rows = task.share < task.rows_i ? (task.rows_i - task.share - 1) / task.shares + 1 : 0;
    const u64 stride = u64(unit.parts) * blockDim.x;
    if (threadIdx.x < 3) listed.lengths[threadIdx.x] = 0;
    __syncthreads();  // nothing is listed
    for (u64 first = u64(unit.part) * blockDim.x; first < rows; first += stride) {
        if (first + threadIdx.x < rows) {
            const u32 row = u32(task.share + (first + threadIdx.x) * task.shares);
            const Arcs middles = arcs_of(task.blocks.ij, row);
            if (middles.begin < middles.end) {
                const Arcs ends = arcs_of(task.blocks.ik, row);
                const bool is_large = middles.end - middles.begin > most.middles || ends.end - ends.begin > most.ends;
                if (ends.begin < ends.end) {
                    const u32 place = atomicAdd(listed.lengths + !is_large, 1u);
                    listed.places[is_large ? place : MAX_LISTED - 1 - place] = row;
                }
            }
        }
        __syncthreads();  // the stretch is listed
        const u32 large = listed.lengths[0], small = listed.lengths[1];
        const bool is_full = large + small + blockDim.x > MAX_LISTED || first + stride >= rows;
        if (is_full) visit(large, small);
        __syncthreads();  // all have read what is listed
        if (is_full && threadIdx.x < 3) listed.lengths[threadIdx.x] = 0;
        __syncthreads();  // nobody lists more before
    }
}
