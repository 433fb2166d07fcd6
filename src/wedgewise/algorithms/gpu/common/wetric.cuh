#include "common/reduce.cuh"
#include "common/search.cuh"

// An oriented graph with ids by rank, and the arcs among its last vertices as bits. Both vertices of such an arc are
// numbered from the end: row r = n - 1 - w has a bit for each of the columns c = n - 1 - u < r. Rows follow each other
// in whole words.
struct Graph {
    const offset_t* offsets;
    const u32* ids;
    const u32* matrix;
    u32 n;
    u32 first_dense;  // the rows of [first_dense, n) are in the matrix
};

// Where row r >= 1 begins: the sum of ceil(i / 32) over i < r.
__device__ __forceinline__ u64 matrix_row(u32 r) {
    const u32 full = (r - 1) / 32;
    return u64(full + 1) * (r - 1 - 16 * full);
}

__device__ __forceinline__ u64 matrix_word(u32 n, u32 w, u32 u) { return matrix_row(n - 1 - w) + (n - 1 - u) / 32; }

__device__ __forceinline__ u32 matrix_bit(u32 n, u32 u) { return (n - 1 - u) % 32; }

// 1 if there is an arc w -> u, else 0; w < u, first_dense <= w.
__device__ __forceinline__ u32 look_up(const Graph& graph, u32 w, u32 u) {
    return __ldg(graph.matrix + matrix_word(graph.n, w, u)) >> matrix_bit(graph.n, u) & 1;
}

// 1 if there is an arc w -> u, else 0.
__device__ __forceinline__ u32 search(const Graph& graph, u32 w, u32 u) {
    const offset_t end = graph.offsets[w + 1];
    const offset_t place = first_not_below(graph.ids, graph.offsets[w], end, u);
    return place < end && graph.ids[place] == u;
}

__device__ __forceinline__ u32 has_arc(const Graph& graph, u32 w, u32 u) {
    return w >= graph.first_dense ? look_up(graph, w, u) : search(graph, w, u);
}

// The last place of the ascending before[low, high] that is not above wanted; before[low] is not.
template <class Place>
__device__ __forceinline__ Place last_not_above(const u64* before, Place low, Place high, u64 wanted) {
    while (low < high) {
        const Place middle = high - (high - low) / 2;
        if (before[middle] <= wanted) low = middle;
        else high = middle - 1;
    }
    return low;
}

// The same where the place is likely to be close to low: looks 1, 2, 4 … places ahead first.
template <class Place>
__device__ __forceinline__ Place last_not_above_near(const u64* before, Place low, Place high, u64 wanted) {
    Place step = 1;
    while (high - low > step && before[low + step] <= wanted) {
        low += step;
        step *= 2;
    }
    return last_not_above(before, low, min(high, low + step), wanted);
}
