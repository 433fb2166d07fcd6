// What: rounds of eager k-truss: supports by merging rows that end in a zero, then the arcs of too little support go.
// Paper: M. Blanco, T. M. Low, K. Kim, "Exploration of fine-grained parallelism for load balancing eager k-truss on GPU
//   and CPU", HPEC 2019, Algorithms 2 and 3, Listing 1.
// Who does what: a thread per slot (fine) or per row (coarse) merges, for each of its arcs a -> b, what stands behind b
//   in the row of a with the row of b; each common c credits a -> b, a -> c and b -> c at once. A warp per row prunes.
// Input: ids by rank, so that no arc leads to vertex 0. Row u is the slots [begins[u], begins[u + 1]): its living heads,
//   ascending, then zeros, at least one. Supports are zero before a round.
// Output: supports by slot; rows without the arcs that had too little, whose number is added to found[0].
// Memory: 8 bytes per slot, m + n of them, an offset per vertex, and a byte per arc for what lives.
// Differs from the authors' code in: 32-bit supports instead of 16-bit ones, which wrap at 65,536 triangles; a cursor
//   loads only when it has moved; a warp instead of a thread prunes a row; several launches for large graphs.
#include "common/block_sum.cuh"
#include "common/search.cuh"

extern "C" __global__ void terminate_rows(const u32* heads, const u32* tails, u64 m, u32* rows) {
    for (u64 arc = u64(blockIdx.x) * blockDim.x + threadIdx.x; arc < m; arc += u64(gridDim.x) * blockDim.x)
        rows[arc + tails[arc]] = heads[arc];
}

// head is that of the arc at slot.
__device__ __forceinline__ void credit_slot(const offset_t* begins, const u32* rows, offset_t slot, u32 head,
                                            u32* supports) {
    offset_t behind = slot + 1, other = begins[head];
    u32 x = rows[behind], y = rows[other], opened = 0;
    while (x != 0 && y != 0) {
        const bool passes_x = x <= y, passes_y = y <= x;
        if (passes_x && passes_y) {
            atomicAdd(supports + behind, 1u);
            atomicAdd(supports + other, 1u);
            ++opened;
        }
        if (passes_x) x = rows[++behind];
        if (passes_y) y = rows[++other];
    }
    if (opened > 0) atomicAdd(supports + slot, opened);
}

// Fine: slots [begin, end), one thread each.
extern "C" __global__ void credit_slots(const offset_t* begins, const u32* rows, u64 begin, u64 end, u32* supports) {
    const u64 slot = begin + u64(blockIdx.x) * blockDim.x + threadIdx.x;
    const u32 head = slot < end ? rows[slot] : 0;
    if (head != 0) credit_slot(begins, rows, offset_t(slot), head, supports);
}

// Coarse: rows [begin, end), one thread each.
extern "C" __global__ void credit_rows(const offset_t* begins, const u32* rows, u64 begin, u64 end, u32* supports) {
    const u64 u = begin + u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (u >= end) return;
    offset_t slot = begins[u];
    for (u32 head = rows[slot]; head != 0; head = rows[++slot]) credit_slot(begins, rows, slot, head, supports);
}

// Moves the living of the slots [begin, end) to their front and fills up with zeros; how many went. All lanes of a warp
// come here with the same row.
__device__ __forceinline__ u32 prune_row(offset_t begin, offset_t end, u32 least, const u32* supports, u32* rows) {
    const u32 lane = threadIdx.x % WARP, lanes_before = (1u << lane) - 1;
    offset_t place = begin, seen = begin;
    u32 heads = ALL_LANES;
    for (offset_t first = begin; first < end && heads == ALL_LANES; first += WARP) {
        const offset_t slot = first + lane;
        const u32 head = slot < end ? rows[slot] : 0;
        const bool lives = head != 0 && supports[slot] >= least;
        heads = __ballot_sync(ALL_LANES, head != 0);
        const u32 living = __ballot_sync(ALL_LANES, lives);
        __syncwarp();  // all lanes have read what others write over
        const offset_t target = place + __popc(living & lanes_before);
        if (lives && target != slot) rows[target] = head;
        place += __popc(living);
        seen += __popc(heads);
    }
    for (offset_t slot = place + lane; slot < seen; slot += WARP) rows[slot] = 0;
    return u32(seen - place);
}

extern "C" __global__ void prune_rows(const offset_t* begins, u32 n, u32 least, const u32* supports, u32* rows,
                                      u64* found) {
    const u64 warps = u64(gridDim.x) * (blockDim.x / WARP);
    u64 gone = 0;
    for (u64 u = (u64(blockIdx.x) * blockDim.x + threadIdx.x) / WARP; u < n; u += warps)
        gone += prune_row(begins[u], begins[u + 1] - 1, least, supports, rows);  // the last slot is always zero
    add_block_found(found, threadIdx.x % WARP == 0 ? gone : 0, 0);
}

// lives[arc] says whether an arc is still in its row. Zeros less one are above every id.
extern "C" __global__ void mark_living(const offset_t* offsets, const u32* heads, const offset_t* begins, const u32* rows,
                                       u32 n, u64 m, u8* lives) {
    for (u64 arc = u64(blockIdx.x) * blockDim.x + threadIdx.x; arc < m; arc += u64(gridDim.x) * blockDim.x) {
        const u32 u = row_of(offsets, n, offset_t(arc)), wanted = heads[arc];
        offset_t low = begins[u], high = begins[u + 1] - 1;  // where a zero is
        while (low < high) {
            const offset_t middle = low + (high - low) / 2;
            if (rows[middle] - 1 < wanted - 1) low = middle + 1;
            else high = middle;
        }
        lives[arc] = rows[low] == wanted;
    }
}
