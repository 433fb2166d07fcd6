#include "common/types.cuh"

// The row that holds an arc: the last that begins at or before it, where offsets[low] <= arc < offsets[high].
__device__ __forceinline__ u32 row_between(const offset_t* offsets, u32 low, u32 high, offset_t arc) {
    while (high - low > 1) {
        const u32 middle = low + (high - low) / 2;
        if (offsets[middle] <= arc) low = middle;
        else high = middle;
    }
    return low;
}

// The same among all n rows.
__device__ __forceinline__ u32 row_of(const offset_t* offsets, u32 n, offset_t arc) { return row_between(offsets, 0, n, arc); }

// Whether the ascending ids[low, high) hold an id; a thread that finds it takes no further steps.
__device__ __forceinline__ bool holds(const u32* ids, u32 low, u32 high, u32 wanted) {
    while (low < high) {
        const u32 middle = low + (high - low) / 2, id = ids[middle];
        if (id == wanted) return true;
        if (id < wanted) low = middle + 1;
        else high = middle;
    }
    return false;
}

// Whether the ascending ids[0, length) hold an id; length >= 1. Threads with one length take equally many steps.
__device__ __forceinline__ bool is_member(const u32* ids, u32 length, u32 wanted) {
    u32 low = 0;  // ids[low] <= wanted unless all are above
    while (length > 1) {
        const u32 half = length / 2;
        if (ids[low + half] <= wanted) low += half;
        length -= half;
    }
    return ids[low] == wanted;
}

// The first place of the ascending ids[low, high) that is not below wanted; high if all are.
__device__ __forceinline__ offset_t first_not_below(const u32* ids, offset_t low, offset_t high, u32 wanted) {
    while (low < high) {
        const offset_t middle = low + (high - low) / 2;
        if (ids[middle] < wanted) low = middle + 1;
        else high = middle;
    }
    return low;
}
