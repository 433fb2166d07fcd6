// What: counts triangles wedge by wedge. The wedges of all vertices are numbered; a thread finds the wedge of a number
//   by searching the sums of wedges before each vertex, constructs it and asks whether its closing arc is there.
// Paper: Spaan, Chen, Bader, Varbanescu: Wedge-Parallel Triangle Counting for GPUs (WeTriC), sections 3 to 5.
// Who does what: a warp takes `rounds` × 32 × SPREAD wedges in a row, then those that lie a whole grid further. In a
//   round each thread constructs SPREAD successive wedges and puts them into shared memory; with COOPERATION 1 the warp
//   then tests 32 successive wedges at a time, with 0 each thread tests its own.
//     outgoing   base v, leaves w < u of N+(v): does w have u?   N+(v) in pairs: (0,1) (0,2) … (1,2) …
//     arrow      v -> w -> u: does v have u?                     by arc v -> w, then along N+(w)
//   The closing arc of a row among the last vertices is a bit of the matrix, of any other it is searched.
// Input: ids by rank, rows ascending; the sums of wedges before each vertex (arrow: and before each arc).
// Output: triangles and tests, added to found[0] and found[1].
// Memory: a sum of 8 bytes per vertex (arrow: and per arc), x^2 / 16 bytes for a matrix of x vertices; in shared
//   memory 8 bytes per wedge of a round (12 with 64-bit offsets).
// Differs from the authors' code in (as far as the paper describes it): the warp searches a base vertex together, 32
//   places at a time, and once for several rounds; cooperation is among a warp, so that no block waits; rows of the
//   matrix are as long as their numbers, hubs first; leaves are kept by position and read side by side when tested.
#include "common/wetric.cuh"

#ifndef SPREAD
#define SPREAD 7
#endif
#ifndef COOPERATION
#define COOPERATION 1
#endif
#ifndef BLOCK
#define BLOCK 256
#endif

#define ROUND (WARP * SPREAD)
#define STRIDE (SPREAD | 1u)  // odd: the threads of a warp write to different banks
#define SLOTS (WARP * STRIDE)

// The place of a round's wedge in shared memory.
__device__ __forceinline__ u32 slot_of(u32 wedge) {
    return STRIDE == SPREAD ? wedge : wedge / SPREAD * STRIDE + wedge % SPREAD;
}

// The last vertex of [low, high) whose sum is not above wanted, for the whole warp; low's is not, high's would be.
__device__ __forceinline__ u32 find_base_together(const u64* before, u32 low, u32 high, u64 wanted) {
    const u32 lane = threadIdx.x % WARP;
    while (high - low > 1) {
        const u32 step = (high - low - 1) / WARP + 1;
        const u64 probe = low + u64(step) * (lane + 1);  // the last lane's is not below high
        const u32 above = __ballot_sync(ALL_LANES, probe >= high || before[probe] > wanted);
        low += step * (__ffs(above) - 1);
        high = high - low < step ? high : low + step;
    }
    return low;
}

// The same, where it is likely to be among the next 32.
__device__ __forceinline__ u32 find_near_base_together(const u64* before, u32 low, u32 high, u64 wanted) {
    const u64 probe = low + 1ull + threadIdx.x % WARP;
    const u32 above = __ballot_sync(ALL_LANES, probe >= high || before[probe] > wanted);
    if (above != 0) return low + __ffs(above) - 1;
    return find_base_together(before, low + WARP, high, wanted);
}

// The largest p with p (p + 1) / 2 <= r, from a guess that is off by one at most.
template <class Number>
__device__ __forceinline__ Number settled_root(Number p, Number r) {
    if (p * (p + 1) / 2 > r) return p - 1;
    return (p + 1) * (p + 2) / 2 <= r ? p + 1 : p;
}

// r < 2^31
__device__ __forceinline__ u32 triangular_root(u32 r) {
    return settled_root(u32((sqrtf(8.0f * float(r) + 1.0f) - 1.0f) / 2.0f), r);
}

// r < 2^63
__device__ __forceinline__ u64 triangular_root(u64 r) {
    return settled_root(u64((sqrt(8.0 * double(r) + 1.0) - 1.0) / 2.0), r);
}

// The wedges of one thread, one after the other: a base vertex, the row to look for the closing arc in, and the
// position of the id to look for.
struct OutgoingWalk {
    const u64* before;
    u32 base, last_base;
    u32 row;
    offset_t row_at, leaf, end;  // row_at < leaf < end, the positions of w, of u, and behind N+(base)

    __device__ __forceinline__ void start(const Graph& graph, u64 wedge) {
        base = last_not_above(before, base, last_base, wedge);
        end = graph.offsets[base + 1];
        const offset_t degree = end - graph.offsets[base];
        const u64 number = wedge - before[base];
        if (degree < 1 << 16) place(u32(degree), u32(number));
        else place(u64(degree), number);
        row = graph.ids[row_at];
    }

    // Finds the wedge of a number in 0 … degree (degree - 1) / 2 - 1, counted from the other end.
    template <class Number>
    __device__ __forceinline__ void place(Number degree, Number number) {
        const Number behind = degree * (degree - 1) / 2 - 1 - number;
        const Number rows_behind = triangular_root(behind);
        row_at = end - 2 - offset_t(rows_behind);
        leaf = end - 1 - offset_t(behind - rows_behind * (rows_behind + 1) / 2);
    }

    __device__ __forceinline__ void advance(const Graph& graph, u64 wedge) {
        if (++leaf < end) return;
        if (++row_at + 1 == end) {
            base = last_not_above_near(before, base + 1, last_base, wedge);
            row_at = graph.offsets[base];
            end = graph.offsets[base + 1];
        }
        row = graph.ids[row_at];
        leaf = row_at + 1;
    }
};

struct ArrowWalk {
    const u64* before;
    const u64* before_arc;
    u32 base, last_base;
    u32 row;
    offset_t arc, leaf, end;  // the positions of v -> w, of u, and behind N+(w)

    __device__ __forceinline__ void start(const Graph& graph, u64 wedge) {
        base = last_not_above(before, base, last_base, wedge);
        enter(graph, last_not_above(before_arc, graph.offsets[base], offset_t(graph.offsets[base + 1] - 1), wedge));
        leaf += offset_t(wedge - before_arc[arc]);
    }

    __device__ __forceinline__ void advance(const Graph& graph, u64 wedge) {
        if (++leaf < end) return;
        base = last_not_above_near(before, base, last_base, wedge);
        const offset_t low = max(offset_t(arc + 1), graph.offsets[base]);
        enter(graph, last_not_above_near(before_arc, low, offset_t(graph.offsets[base + 1] - 1), wedge));
    }

    __device__ __forceinline__ void enter(const Graph& graph, offset_t entered) {
        arc = entered;
        row = base;
        const u32 w = graph.ids[arc];
        leaf = graph.offsets[w];
        end = graph.offsets[w + 1];
    }
};

// The number of a round's wedge that a thread tests in its k-th step.
__device__ __forceinline__ u32 tested_wedge(u32 k) {
    const u32 lane = threadIdx.x % WARP;
    return COOPERATION ? k * WARP + lane : lane * SPREAD + k;
}

// Tests the `count` wedges of a round. First the bits of the matrix, without a branch, so that the loads of all steps
// are under way at once: a step with nothing to look up reads the first id and the first word. Then the searches.
__device__ __forceinline__ u32 count_closed(const Graph& graph, const u32* rows, const offset_t* leaves, u32 count) {
    u32 closed = 0, searched = 0;
#pragma unroll
    for (u32 k = 0; k < SPREAD; ++k) {
        const bool real = tested_wedge(k) < count;
        const u32 slot = slot_of(tested_wedge(k));
        const u32 row = real ? rows[slot] : 0;
        const bool dense = real && row >= graph.first_dense;
        const u32 leaf = __ldg(graph.ids + (dense ? leaves[slot] : 0));
        const u32 word = __ldg(graph.matrix + (dense ? matrix_word(graph.n, row, leaf) : 0));
        closed += dense ? word >> matrix_bit(graph.n, leaf) & 1 : 0;
        searched |= u32(real && !dense) << k;
    }
    for (; searched != 0; searched &= searched - 1) {
        const u32 slot = slot_of(tested_wedge(__ffs(searched) - 1));
        closed += search(graph, rows[slot], graph.ids[leaves[slot]]);
    }
    return closed;
}

// Goes through the wedges [begin, end); the walk knows where they are.
template <class Walk>
__device__ __forceinline__ void count_wedges(const Graph& graph, Walk walk, u64 begin, u64 end, u32 rounds,
                                             u64* found) {
    DYNAMIC_SHARED(offset_t, shared);
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    offset_t* leaves = shared + warp * SLOTS;
    u32* rows = reinterpret_cast<u32*>(shared + warps * SLOTS) + warp * SLOTS;
    const u64 share = u64(rounds) * ROUND, grid = u64(gridDim.x) * warps * share;
    u64 closed = 0;
    for (u64 first = begin + (u64(blockIdx.x) * warps + warp) * share; first < end; first += grid) {
        u32 base = find_base_together(walk.before, 0, graph.n, first);
        const u64 stop = min(end, first + share);
        for (u64 at = first; at < stop; at += ROUND) {
            const u32 count = u32(min(u64(ROUND), stop - at));
            const u32 last_base = find_near_base_together(walk.before, base, graph.n, at + count - 1);
            const u32 own = lane * SPREAD;
            if (own < count) {
                walk.base = base;
                walk.last_base = last_base;
                walk.start(graph, at + own);
                for (u32 k = 0;;) {
                    rows[lane * STRIDE + k] = walk.row;
                    leaves[lane * STRIDE + k] = walk.leaf;
                    if (++k == SPREAD || own + k == count) break;
                    walk.advance(graph, at + own + k);
                }
            }
            __syncwarp(ALL_LANES);  // the round is written
            closed += count_closed(graph, rows, leaves, count);
            __syncwarp(ALL_LANES);  // the round is read
            base = last_base;
        }
    }
    add_found(found, closed);
    if (blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(found + 1, end - begin);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
count_outgoing(const offset_t* offsets, const u32* ids, const u32* matrix, u32 n, u32 first_dense, const u64* before,
               u64 begin, u64 end, u32 rounds, u64* found) {
    count_wedges(Graph{offsets, ids, matrix, n, first_dense}, OutgoingWalk{before}, begin, end, rounds, found);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
count_arrows(const offset_t* offsets, const u32* ids, const u32* matrix, u32 n, u32 first_dense, const u64* before,
             const u64* before_arc, u64 begin, u64 end, u32 rounds, u64* found) {
    count_wedges(Graph{offsets, ids, matrix, n, first_dense}, ArrowWalk{before, before_arc}, begin, end, rounds, found);
}

// Sets the bits of the matrix, a warp per row of [first_dense, n).
extern "C" __global__ void fill_matrix(const offset_t* offsets, const u32* ids, u32 n, u32 first_dense, u32* matrix) {
    const u32 lane = threadIdx.x % WARP, warps = gridDim.x * blockDim.x / WARP;
    for (u64 w = first_dense + u64(blockIdx.x * blockDim.x + threadIdx.x) / WARP; w < n; w += warps)
        for (u64 at = u64(offsets[w]) + lane; at < offsets[w + 1]; at += WARP)
            atomicOr(matrix + matrix_word(n, u32(w), ids[at]), 1u << matrix_bit(n, ids[at]));
}
