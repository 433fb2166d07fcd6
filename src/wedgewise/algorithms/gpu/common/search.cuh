#include "common/types.cuh"

// The row that holds an arc: the last of n rows that begins at or before it.
__device__ __forceinline__ u32 row_of(const offset_t* offsets, u32 n, offset_t arc) {
    u32 low = 0, high = n;  // offsets[low] <= arc < offsets[high]
    while (high - low > 1) {
        const u32 middle = low + (high - low) / 2;
        if (offsets[middle] <= arc) low = middle;
        else high = middle;
    }
    return low;
}
