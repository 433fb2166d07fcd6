// What: from raw pairs to oriented rows with a single sort, which the host calls between these kernels: how often every
//   id is an end; a key of ranks for each pair; of the sorted keys the first of every arc, in rows.
// Paper: none.
// Who does what: a thread per end, a thread per pair, a block per tile of keys.
// Input: pairs of 32-bit or 64-bit ids, the rank of each id. Output: see prepare/ranked_arcs.py. Memory: what the host
//   passes; the keys of 32-bit pairs may lie where the pairs do.
#include "common/reduce.cuh"

#ifndef ID_BITS
#define ID_BITS 32
#endif
#if ID_BITS == 64
typedef u64 end_t;
#else
typedef u32 end_t;
#endif

#define TILE_BLOCK 256u
#define KEYS_PER_LANE 8u
#define TILE (TILE_BLOCK * KEYS_PER_LANE)
#define LOOP (u64(1) << 63)  // a key: loop (1 bit), lower rank (31), higher rank (31), turned (1)
#define HEAD_MASK 0x7FFFFFFFu

// Adds to degrees[id] for every end whose id is below `ids`; largest[0] becomes the largest id if it was below.
extern "C" __global__ void count_ends(const end_t* ends, u64 count, u64 ids, u32* degrees, u64* largest) {
    u64 seen = 0;
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += u64(gridDim.x) * blockDim.x) {
        const u64 id = ends[at];
        seen = max(seen, id);
        if (id < ids) atomicAdd(degrees + id, 1u);
    }
    for (u32 distance = WARP / 2; distance > 0; distance /= 2) {
        const u64 other = __shfl_xor_sync(ALL_LANES, seen, distance);
        seen = max(seen, other);
    }
    if (threadIdx.x % WARP == 0 && seen > 0) atomicMax(largest, seen);
}

// The key of every pair; outside[0] becomes 1 where an id is not below `ids`.
extern "C" __global__ void write_keys(const end_t* ends, u64 count, const u32* ranks, u64 ids, u64* keys, u32* outside) {
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += u64(gridDim.x) * blockDim.x) {
        const end_t first = ends[2 * at], second = ends[2 * at + 1];
        if (first >= ids || second >= ids) {
            STORE_EQUAL(outside, 1u);
            continue;
        }
        const u32 u = ranks[first], v = ranks[second];
        const u64 key = u64(min(u, v)) << 32 | u64(max(u, v)) << 1 | u64(u > v);
        keys[at] = u == v ? key | LOOP : key;
    }
}

struct Lane {
    u64 keys[KEYS_PER_LANE];
    u64 before;  // the key before the first one
    u32 count;
};

// The keys of a lane, which lie side by side, and the one before them; loops are not counted.
__device__ __forceinline__ Lane lane_of(const u64* keys, u64 first, u64 count) {
    Lane lane;
    lane.count = first < count ? u32(min(u64(KEYS_PER_LANE), count - first)) : 0;
    lane.before = first > 0 && first < count ? keys[first - 1] : ~u64(0);
    for (u32 k = 0; k < KEYS_PER_LANE; ++k) lane.keys[k] = k < lane.count ? keys[first + k] : ~u64(0);
    return lane;
}

// Counts the arcs that begin in each tile of sorted keys: those that differ from the key before by more than `turned`.
// Adds to repeats[0] the keys that equal the one before, and to repeats[1] the loops.
extern "C" __global__ void __launch_bounds__(TILE_BLOCK)
    count_arcs(const u64* keys, u64 count, u32* arcs_of_tile, u64* repeats) {
    const Lane lane = lane_of(keys, u64(blockIdx.x) * TILE + threadIdx.x * KEYS_PER_LANE, count);
    u64 arcs = 0, repeated = 0, loops = 0, before = lane.before;
    for (u32 k = 0; k < KEYS_PER_LANE; ++k) {
        const u64 key = lane.keys[k];
        if (k < lane.count) {
            const bool loop = key >= LOOP;
            loops += loop;
            arcs += !loop && (key ^ before) > 1;
            repeated += !loop && key == before;
        }
        before = key;
    }
    arcs = warp_sum(arcs);
    if (threadIdx.x % WARP == 0 && arcs > 0) atomicAdd(arcs_of_tile + blockIdx.x, u32(arcs));
    add_found(repeats, repeated);
    add_found(repeats + 1, loops);
}

// Writes the head of every arc, and adds up the out-degrees from where rows begin; `arcs` is how many there are.
extern "C" __global__ void __launch_bounds__(TILE_BLOCK)
    write_arcs(const u64* keys, u64 count, const u64* arcs_before, u64 arcs, u32* heads, u32* out_degrees) {
    __shared__ u32 warp_arcs[TILE_BLOCK / WARP];
    const Lane lane = lane_of(keys, u64(blockIdx.x) * TILE + threadIdx.x * KEYS_PER_LANE, count);
    const u32 number = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u32 firsts = 0;
    u64 before = lane.before;
    for (u32 k = 0; k < KEYS_PER_LANE; ++k) {
        const u64 key = lane.keys[k];
        if (k < lane.count && key < LOOP && (key ^ before) > 1) firsts |= 1u << k;
        before = key;
    }
    u32 up_to = __popc(firsts);  // those of the lanes of the warp up to this one
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        const u32 other = __shfl_up_sync(ALL_LANES, up_to, distance);
        if (number >= distance) up_to += other;
    }
    if (number == WARP - 1) warp_arcs[warp] = up_to;
    __syncthreads();
    u64 arc = arcs_before[blockIdx.x] + up_to - __popc(firsts);
    for (u32 other = 0; other < warp; ++other) arc += warp_arcs[other];
    before = lane.before;
    for (u32 k = 0; k < KEYS_PER_LANE; ++k) {
        const u64 key = lane.keys[k];
        if (firsts >> k & 1u) {
            const u32 tail = u32(key >> 32), tail_before = u32(before >> 32);
            if (arc == 0 || tail != tail_before) {  // a row begins, and the one before ends
                atomicSub(out_degrees + tail, u32(arc));
                if (arc > 0) atomicAdd(out_degrees + tail_before, u32(arc));
            }
            if (arc + 1 == arcs) atomicAdd(out_degrees + tail, u32(arcs));
            heads[arc] = u32(key >> 1) & HEAD_MASK;
            ++arc;
        }
        before = key;
    }
}
