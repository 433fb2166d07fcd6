// What: credits every triangle a < b < c to its arcs a -> b, a -> c and b -> c, or to a -> b alone, the arc that opens
//   it; and writes the triangles out.
// Paper: ours.
// Who does what:
//     pivots   a block holds N+(b) as a bitmap of the last ids, with the place in b's row at which each word begins, so
//              that a hit says where b -> c is. For every in-arc a -> b, LANES threads stream the ids of a's row behind
//              b. A hit counts for a -> b in a register, for b -> c in shared memory, for a -> c at the streamed place.
//     arcs     pivots with little work: LANES threads per arc look the ids of the shorter list up in the longer one.
//     writing  LANES threads per arc that opens triangles do the same, and write hits side by side in ascending order.
// Input: ids by rank, rows ascending, fewer than 2^32 arcs. An item is a uint2: x the place of the arc a -> b, y the
//   end of a's row. Items of pivots are in the order of b.
// Output: credits, one number per arc; triangles and tests, added to found[0] and found[1]; triples a, b, c.
// Memory: 8 bytes per item. In shared memory 6 bytes per 32 ids of a bitmap, and 4 per counted place of a row; credits
//   of places behind those go straight to global memory.
// Differs from the authors' code in: nothing, there is no other.
#include "common/reduce.cuh"
#include "common/search.cuh"

#ifndef LANES
#define LANES 8u
#endif
#ifndef CREDIT_ALL
#define CREDIT_ALL 1
#endif
#define MAX_THREADS 1024
#define IDS_PER_WORD 32u
#define GROUPS (WARP / LANES)
#define NOWHERE 0xFFFFFFFFu

struct Pivot {
    const u32* heads;
    offset_t begin, split, end;  // its row: [begin, split) below the bitmap's ids, [split, end) in the bitmap
    u32 first_hub;               // the bitmap's first id
    u32* bits;
    u16* before;  // hubs of the row before a word that has any
};

// The sum over a group of LANES lanes, in each of them; all lanes of the warp must come here.
__device__ __forceinline__ u32 group_sum(u32 value) {
    for (u32 distance = LANES / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(ALL_LANES, value, distance);
    return value;
}

// The item of a lane's group, if the warp takes items from first on and they end at stop; else one without ids.
__device__ __forceinline__ uint2 item_of_group(const uint2* items, offset_t first, offset_t stop) {
    const offset_t at = first + threadIdx.x % WARP / LANES;
    return at < stop ? items[at] : make_uint2(0, 1);
}

__device__ __forceinline__ Pivot pivot_of(u32 b, const offset_t* offsets, const u32* heads, u32 n, u32 hubs, u32* bits,
                                          u16* before) {
    const offset_t begin = offsets[b], end = offsets[b + 1];
    const u32 first_hub = max(n - hubs, b + 1);
    const offset_t split = first_hub == b + 1 ? begin : first_not_below(heads, begin, end, first_hub);
    return {heads, begin, split, end, first_hub, bits, before};
}

__device__ __forceinline__ u32 word_at(const Pivot& pivot, offset_t place) {
    return (pivot.heads[place] - pivot.first_hub) / IDS_PER_WORD;
}

// Whether the hub at a place of the row is the first one of its word.
__device__ __forceinline__ bool begins_word(const Pivot& pivot, offset_t place) {
    return place == pivot.split || word_at(pivot, place - 1) != word_at(pivot, place);
}

__device__ __forceinline__ void enter_row(const Pivot& pivot) {
    for (offset_t place = pivot.split + threadIdx.x; place < pivot.end; place += blockDim.x) {
        const u32 word = word_at(pivot, place);
        atomicOr(pivot.bits + word, 1u << (pivot.heads[place] - pivot.first_hub) % IDS_PER_WORD);
        if (begins_word(pivot, place)) pivot.before[word] = place - pivot.split;
    }
}

// Leaves the bitmap and the counters as they were before the row was entered: all zero.
__device__ __forceinline__ void leave_row(const Pivot& pivot, u32* counters, u32 counted, u32* credits) {
    for (offset_t place = pivot.split + threadIdx.x; place < pivot.end; place += blockDim.x)
        if (begins_word(pivot, place)) pivot.bits[word_at(pivot, place)] = 0;
    if (!CREDIT_ALL) return;
    const u32 length = min(u32(pivot.end - pivot.begin), counted);
    for (u32 at = threadIdx.x; at < length; at += blockDim.x) {
        if (counters[at] == 0) continue;
        atomicAdd(credits + pivot.begin + at, counters[at]);
        counters[at] = 0;
    }
}

// Where c stands in the pivot's row, from the row's begin; NOWHERE if it does not.
__device__ __forceinline__ u32 place_of(const Pivot& pivot, u32 c) {
    if (c < pivot.first_hub) {
        const offset_t place = first_not_below(pivot.heads, pivot.begin, pivot.split, c);
        return place < pivot.split && pivot.heads[place] == c ? u32(place - pivot.begin) : NOWHERE;
    }
    const u32 hub = c - pivot.first_hub, bit = 1u << hub % IDS_PER_WORD, word = pivot.bits[hub / IDS_PER_WORD];
    if (!(word & bit)) return NOWHERE;
    return u32(pivot.split - pivot.begin) + pivot.before[hub / IDS_PER_WORD] + __popc(word & (bit - 1));
}

// The hits of one lane among the ids behind an in-arc.
__device__ __forceinline__ u32 stream_tail(const Pivot& pivot, uint2 item, u32* counters, u32 counted, u32* credits) {
    u32 hits = 0;
    for (offset_t at = offset_t(item.x) + 1 + threadIdx.x % LANES; at < item.y; at += LANES) {
        const u32 place = place_of(pivot, __ldg(pivot.heads + at));
        if (place == NOWHERE) continue;
        ++hits;
        if (!CREDIT_ALL) continue;
        atomicAdd(credits + at, 1u);
        if (place < counted) atomicAdd(counters + place, 1u);
        else atomicAdd(credits + pivot.begin + place, 1u);
    }
    return hits;
}

// Block i takes the items [cuts[i], cuts[i + 1]); those of pivot b end at items_end[b].
extern "C" __global__ void __launch_bounds__(MAX_THREADS)
    credit_pivots(const offset_t* offsets, const u32* heads, u32 n, u32 hubs, u32 counted, const uint2* items,
                  const u32* items_end, const u32* cuts, u32* credits, u64* found) {
    DYNAMIC_SHARED(u32, bits);
    const u32 words = hubs / IDS_PER_WORD + 1, stop = cuts[blockIdx.x + 1];
    u32* counters = bits + words;
    u16* before = reinterpret_cast<u16*>(counters + counted);
    for (u32 at = threadIdx.x; at < words + counted; at += blockDim.x) bits[at] = 0;
    __syncthreads();
    u64 triangles = 0, tests = 0;
    for (u32 at = cuts[blockIdx.x]; at < stop;) {
        const u32 b = heads[items[at].x], next = min(items_end[b], stop);
        const Pivot pivot = pivot_of(b, offsets, heads, n, hubs, bits, before);
        enter_row(pivot);
        __syncthreads();
        for (offset_t first = offset_t(at) + threadIdx.x / WARP * GROUPS; first < next; first += blockDim.x / LANES) {
            const uint2 item = item_of_group(items, first, next);
            const u32 hits = group_sum(stream_tail(pivot, item, counters, counted, credits));
            if (threadIdx.x % LANES > 0) continue;
            if (hits > 0) atomicAdd(credits + item.x, hits);
            triangles += hits;
            tests += item.y - item.x - 1;
        }
        __syncthreads();  // nobody looks anything up any more
        leave_row(pivot, counters, counted, credits);
        __syncthreads();
        at = next;
    }
    add_found(found, triangles);
    add_found(found + 1, tests);
}

// The first item of a warp, where each group of the grid has one.
__device__ __forceinline__ u32 first_of_warp() { return (blockIdx.x * blockDim.x + threadIdx.x) / WARP * GROUPS; }

// The shorter one of a's ids behind an arc and of its head's row gives the keys, the longer one is searched.
struct Lists {
    const u32* heads;
    offset_t key, keys_end, low, high;
};

__device__ __forceinline__ Lists lists_of(const offset_t* offsets, const u32* heads, offset_t arc, offset_t end) {
    const offset_t begin = offsets[heads[arc]], stop = offsets[heads[arc] + 1];
    if (end - arc - 1 <= stop - begin) return {heads, arc + 1, end, begin, stop};
    return {heads, begin, stop, arc + 1, end};
}

// Whether a key is in the list; the list's rest begins where it is or would be, for keys that ascend.
__device__ __forceinline__ bool advance(Lists& lists, offset_t key) {
    const u32 wanted = lists.heads[key];
    lists.low = first_not_below(lists.heads, lists.low, lists.high, wanted);
    return lists.low < lists.high && lists.heads[lists.low] == wanted;
}

// A group of lanes for each item.
extern "C" __global__ void __launch_bounds__(MAX_THREADS)
    credit_arcs(const offset_t* offsets, const u32* heads, const uint2* items, u32 item_count, u32* credits,
                u64* found) {
    u64 triangles = 0, tests = 0;
    for (u32 first = first_of_warp(); first < item_count; first += gridDim.x * blockDim.x / LANES) {
        const uint2 item = item_of_group(items, first, item_count);
        Lists lists = lists_of(offsets, heads, item.x, item.y);
        u32 hits = 0;
        for (offset_t key = lists.key + threadIdx.x % LANES; key < lists.keys_end; key += LANES) {
            ++tests;
            if (!advance(lists, key)) continue;
            ++hits;
            if (!CREDIT_ALL) continue;
            atomicAdd(credits + key, 1u);
            atomicAdd(credits + lists.low, 1u);
        }
        hits = group_sum(hits);
        if (threadIdx.x % LANES > 0) continue;
        if (hits > 0) atomicAdd(credits + item.x, hits);
        triangles += hits;
    }
    add_found(found, triangles);
    add_found(found + 1, tests);
}

// Arcs [begin, begin + arc_count); ends[i] triangles come before the end of those that arc begin + i opens.
extern "C" __global__ void __launch_bounds__(MAX_THREADS)
    write_triangles(const offset_t* offsets, const u32* heads, const u32* tails, const u32* opened, const u64* ends,
                    u64 begin, u32 arc_count, u32* triples) {
    const u32 group = threadIdx.x % WARP / LANES, lower = (1u << threadIdx.x % WARP) - 1;
    const u32 lanes = (ALL_LANES >> (WARP - LANES)) << group * LANES;
    for (u32 first = first_of_warp(); first < arc_count; first += gridDim.x * blockDim.x / LANES) {
        const u32 at = first + group;
        const u64 arc = begin + at;
        const u32 count = at < arc_count ? opened[arc] : 0;
        const u32 a = count > 0 ? tails[arc] : 0, b = count > 0 ? heads[arc] : 0;
        Lists lists = {heads, 0, 0, 0, 0};
        if (count > 0) lists = lists_of(offsets, heads, arc, offsets[a + 1]);
        const u64 end = count > 0 ? ends[at] : 0;
        u64 place = end - count;
        offset_t key = lists.key + threadIdx.x % LANES;
        while (__any_sync(ALL_LANES, place < end && key < lists.keys_end)) {
            const bool hit = place < end && key < lists.keys_end && advance(lists, key);
            const u32 hits = __ballot_sync(ALL_LANES, hit) & lanes;
            if (hit) {
                u32* triple = triples + 3 * (place + __popc(hits & lower));
                triple[0] = a;
                triple[1] = b;
                triple[2] = heads[key];
            }
            place += __popc(hits);
            key += LANES;
        }
    }
}
