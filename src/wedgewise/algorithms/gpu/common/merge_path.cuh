#include "common/types.cuh"

// Ascending ids; two lists have fewer than 2^32 ids together, since there are fewer than 2^31 vertices.
struct Ids {
    const u32* at;
    u32 length;
};

// How many ids were found in both lists, by how many tests.
struct Common {
    u32 ids, tests;
};

// How many of the first `taken` ids of both lists, merged, are a's; of equal ids a's comes first.
__device__ __forceinline__ u32 taken_from_first(Ids a, Ids b, u32 taken) {
    u32 low = taken > b.length ? taken - b.length : 0, high = min(taken, a.length);
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        if (a.at[middle] <= b.at[taken - 1 - middle]) low = middle + 1;
        else high = middle;
    }
    return low;
}

// One of 2^log_parts equal stretches of the merge, until either list ends. An id of both lists is seen where a's copy
// is taken: b's smaller ids were taken before, b's copy was not. So no stretch looks at another one's ids.
__device__ __forceinline__ Common merge_part(Ids a, Ids b, u32 part, u32 log_parts) {
    const u32 all = a.length + b.length, share = (all >> log_parts) + ((all & ((1u << log_parts) - 1)) != 0);
    const u32 begin = part * share;
    Common common = {0, 0};
    if (begin >= all) return common;
    u32 i = taken_from_first(a, b, begin), j = begin - i;
    if (i == a.length || j == b.length) return common;
    u32 a_id = a.at[i], b_id = b.at[j];
    while (common.tests < share) {
        ++common.tests;
        common.ids += a_id == b_id;
        if (a_id <= b_id) {
            if (++i == a.length) break;
            a_id = a.at[i];
        } else {
            if (++j == b.length) break;
            b_id = b.at[j];
        }
    }
    return common;
}
