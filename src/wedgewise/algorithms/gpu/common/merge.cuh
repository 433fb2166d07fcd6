#include "common/types.cuh"

// How many ids two lists have in common, and the steps until either ends.
struct Merged {
    u32 common;
    u64 steps;
};

// Walks the ascending ids[i, i_end) and others[j, j_end) side by side.
__device__ __forceinline__ Merged merge_lists(const u32* ids, offset_t i, offset_t i_end, const u32* others, offset_t j,
                                              offset_t j_end) {
    Merged merged = {0, 0};
    while (i < i_end && j < j_end) {
        const u32 a = ids[i], b = others[j];
        i += a <= b;
        j += b <= a;
        merged.common += a == b;
        ++merged.steps;
    }
    return merged;
}
