// What: Fox. Every arc u -> v gets as many threads as the estimated work of intersecting N+(u) and N+(v) asks for:
//   arcs are put into six bins by their work, and those of bin n take 2^n threads.
// Paper: J. Fox et al., "Fast and adaptive list intersections on the GPU", HPEC 2018, 1-7.
// Who does what: 2^n threads of a warp per arc. They search for the ids of the shorter list in the longer one, an id
//   per thread, work d log d; or they merge, each an equal stretch of the merge path, work d(u) + d(v). Bin n has the
//   arcs with at most share * 2^n work that fit no smaller bin; the last one has all others.
// Input: any oriented graph, rows ascending; tails[arc] is u.
// Output: triangles, and ids searched for or steps of the merges, added to found[0] and found[1].
// Memory: 4 bytes per arc of tails, 8 of pairs by bucket, 336 per chunk of 512 arcs.
// Differs from the authors' code in: borders of bins are fixed, where the program of the comparison by Li et al.
//   derives them from the largest work, which it keeps modulo 2^16; arcs are counted into bins and keep their order
//   there, for the caches, instead of being sorted; arcs with an empty list are in no bin; a warp loads the rows' ends
//   of 8 to 32 arcs at once; the method may be chosen per arc. Good where degrees are skewed: small intersections share
//   a warp, large ones have one each. On flat graphs the bins only separate neighbours.
#include "common/block_sum.cuh"
#include "common/lists.cuh"
#include "common/merge_path.cuh"
#include "common/occupancy.cuh"
#include "common/search.cuh"

#define BINS 6u
#define BUCKETS (2 * BINS)  // bins of searches, then bins of merges
#define NO_BUCKET BUCKETS
#define CHUNK_ARCS 512u
#define ROUNDS 8u
#define AUTO 0u
#define MERGE 1u

struct Estimate {
    u32 bucket;
    u64 work;
};

__device__ __forceinline__ Estimate estimate(const offset_t* offsets, u32 u, u32 v, u32 method, u32 share) {
    const u32 u_length = row_list(offsets, u).length, v_length = row_list(offsets, v).length;
    if (v_length == 0) return {NO_BUCKET, 0};
    const u64 merging = u64(u_length) + v_length;
    const u64 searching = u64(min(u_length, v_length)) * u32(32 - __clz(max(u_length, v_length)));
    const bool merges = method == MERGE || (method == AUTO && merging < searching);
    const u64 work = merges ? merging : searching;
    u32 bin = 0;
    while (bin + 1 < BINS && work > u64(share) << bin) ++bin;
    return {merges ? BINS + bin : bin, work};
}

// The arcs and the work of every bucket in every chunk; a warp per chunk. Tables have a row of chunks per bucket.
extern "C" __global__ void measure_chunks(const offset_t* offsets, const u32* heads, const u32* tails, u64 m,
                                          u32 method, u32 share, u32* counts, u64* work) {
    __shared__ u32 warp_counts[MAX_WARPS * BUCKETS];
    __shared__ u64 warp_work[MAX_WARPS * BUCKETS];
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    u32* const own_counts = warp_counts + warp * BUCKETS;
    u64* const own_work = warp_work + warp * BUCKETS;
    const u64 chunks = (m + CHUNK_ARCS - 1) / CHUNK_ARCS;
    for (u64 chunk = u64(blockIdx.x) * warps + warp; chunk < chunks; chunk += u64(gridDim.x) * warps) {
        if (lane < BUCKETS) {
            own_counts[lane] = 0;
            own_work[lane] = 0;
        }
        __syncwarp();  // all are clear
        const u64 end = min((chunk + 1) * CHUNK_ARCS, m);
        for (u64 arc = chunk * CHUNK_ARCS + lane; arc < end; arc += WARP) {
            const Estimate estimated = estimate(offsets, tails[arc], heads[arc], method, share);
            if (estimated.bucket == NO_BUCKET) continue;
            atomicAdd(own_counts + estimated.bucket, 1u);
            atomicAdd(own_work + estimated.bucket, estimated.work);
        }
        __syncwarp();  // all arcs are in
        if (lane < BUCKETS) {
            counts[lane * chunks + chunk] = own_counts[lane];
            work[lane * chunks + chunk] = own_work[lane];
        }
    }
}

// Writes the ends of every arc behind those of its bucket in the chunks and arcs before; a warp per chunk.
extern "C" __global__ void place_arcs(const offset_t* offsets, const u32* heads, const u32* tails, u64 m, u32 method,
                                      u32 share, const u64* starts, uint2* pairs) {
    const u32 lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    const u64 chunks = (m + CHUNK_ARCS - 1) / CHUNK_ARCS;
    for (u64 chunk = u64(blockIdx.x) * warps + threadIdx.x / WARP; chunk < chunks; chunk += u64(gridDim.x) * warps) {
        u64 next = lane < BUCKETS ? starts[lane * chunks + chunk] : 0;  // lane b has the place for bucket b
        const u64 end = min((chunk + 1) * CHUNK_ARCS, m);
        for (u64 first = chunk * CHUNK_ARCS; first < end; first += WARP) {
            const u64 arc = first + lane;
            const uint2 pair = arc < end ? make_uint2(tails[arc], heads[arc]) : make_uint2(0, 0);
            const u32 bucket = arc < end ? estimate(offsets, pair.x, pair.y, method, share).bucket : NO_BUCKET;
            for (u32 filled = 0; filled < BUCKETS; ++filled) {
                const u32 votes = __ballot_sync(ALL_LANES, bucket == filled);
                const u64 place = __shfl_sync(ALL_LANES, next, filled);
                if (bucket == filled) pairs[place + u32(__popc(votes & ((1u << lane) - 1)))] = pair;
                if (lane == filled) next += u32(__popc(votes));
            }
        }
    }
}

// The ids of one thread of 2^log_threads.
__device__ __forceinline__ Common search_part(Ids keys, Ids table, u32 part, u32 log_threads) {
    Common common = {0, 0};
    for (u32 key = part; key < keys.length; key += 1u << log_threads) {
        common.ids += holds(table.at, 0, table.length, keys.at[key]);
        ++common.tests;
    }
    return common;
}

// Pairs [begin, end). A warp takes as many at a time as it has lanes, or ROUNDS for every group of threads if these are
// fewer: a lane loads where the rows of its pair are, then every group takes one pair after the other.
template <bool MERGES>
__device__ __forceinline__ void count_pairs(const offset_t* offsets, const u32* heads, const uint2* pairs,
                                            u32 log_threads, u64 begin, u64 end, u64* found) {
    const u32 lane = threadIdx.x % WARP, warps = blockDim.x / WARP;
    const u32 group = lane >> log_threads, part = lane - (group << log_threads), groups = WARP >> log_threads;
    const u32 taken = min(WARP, ROUNDS * groups);
    u64 triangles = 0, tests = 0;
    for (u64 first = begin + (u64(blockIdx.x) * warps + threadIdx.x / WARP) * taken; first < end;
         first += u64(gridDim.x) * warps * taken) {
        List shorter = {0, 0}, longer = {0, 0};
        if (lane < taken && first + lane < end) {
            const uint2 pair = pairs[first + lane];
            const List u_row = row_list(offsets, pair.x), v_row = row_list(offsets, pair.y);
            const bool is_shorter = u_row.length < v_row.length;
            shorter = is_shorter ? u_row : v_row;
            longer = is_shorter ? v_row : u_row;
        }
        for (u32 source = group; source < taken; source += groups) {
            const Ids keys = {heads + __shfl_sync(ALL_LANES, shorter.begin, source),
                              __shfl_sync(ALL_LANES, shorter.length, source)};
            const Ids table = {heads + __shfl_sync(ALL_LANES, longer.begin, source),
                               __shfl_sync(ALL_LANES, longer.length, source)};
            const Common common = MERGES ? merge_part(keys, table, part, log_threads)
                                         : search_part(keys, table, part, log_threads);
            triangles += common.ids;
            tests += common.tests;
        }
    }
    add_block_found(found, triangles, tests);
}

extern "C" __global__ void __launch_bounds__(MAX_THREADS, FULL_BLOCKS)
search_pairs(const offset_t* offsets, const u32* heads, const uint2* pairs, u32 log_threads, u64 begin, u64 end,
             u64* found) {
    count_pairs<false>(offsets, heads, pairs, log_threads, begin, end, found);
}

extern "C" __global__ void __launch_bounds__(MAX_THREADS, FULL_BLOCKS)
merge_pairs(const offset_t* offsets, const u32* heads, const uint2* pairs, u32 log_threads, u64 begin, u64 end,
            u64* found) {
    count_pairs<true>(offsets, heads, pairs, log_threads, begin, end, found);
}
