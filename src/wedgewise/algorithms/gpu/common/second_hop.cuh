#include "common/block_or_warp.cuh"
#include "common/block_sum.cuh"

// Arc i leads to middles[i], and row v is heads[offsets[v], offsets[v + 1]); in a whole graph middles are heads.
struct Graph {
    const offset_t* offsets;
    const u32* heads;
    const u32* middles;
};

// Arcs or keys [begin, end).
struct Stretch {
    offset_t begin, end;
};

// Rows behind each other: keys [stops[k - 1], stops[k]) are heads[key + shifts[k]], modulo 2^OFFSET_BITS.
struct Rows {
    offset_t* stops;
    offset_t* shifts;
    u64* warp_sums;
};

// How a team shares out the rows that some arcs lead to: as one list, copied into one list, or lanes for each row.
struct Virtual {};

struct Physical {
    u32* copied;  // COPIED_PER_THREAD places for each thread of the block
};

struct Apart {
    u32 lanes;
};

#define COPIED_PER_THREAD 64u

// The rows of one warp of a block.
__device__ __forceinline__ Rows part_of_warp(Rows rows) {
    const u32 first = threadIdx.x / WARP * WARP;
    return {rows.stops + first, rows.shifts + first, rows.warp_sums};
}

// Calls visit(unit) for chunks of the units [begin, end): a team takes the first by its number, the others from the
// counter, and meets in every visit. It has two turns, MAX_WARPS apart: one is written while the other may still be
// read.
template <class Team, class Visit>
__device__ __forceinline__ void take_chunks(offset_t begin, offset_t end, u32 length, u32* counter, u32* turns,
                                            Visit visit) {
    const u32 chunks = u32((end - begin + length - 1) / length);
    u32 turn = 0;
    for (u32 chunk = Team::number(); chunk < chunks; turn = MAX_WARPS - turn) {
        if (Team::rank() == 0) turns[turn] = Team::count() + atomicAdd(counter, 1u);
        const offset_t first = begin + offset_t(chunk) * length;
        const offset_t last = min(offset_t(first + length), end);
        for (offset_t unit = first; unit < last; ++unit) visit(unit);
        chunk = turns[turn];  // the team has met since it was written
    }
}

__device__ __forceinline__ Stretch row_at(Graph graph, offset_t arc) {
    const u32 v = graph.middles[arc];
    return {graph.offsets[v], graph.offsets[v + 1]};
}

// Puts the rows that arcs [first, last) lead to behind each other, one per thread of the team at most; returns the
// number of their keys. They are different rows, so there are at most as many as heads.
template <class Team>
__device__ __forceinline__ offset_t combine(Graph graph, offset_t first, offset_t last, Rows rows) {
    Stretch row = {0, 0};
    if (last - first > Team::rank()) row = row_at(graph, first + Team::rank());
    offset_t total;
    const offset_t before = Team::sum_before(offset_t(row.end - row.begin), rows.warp_sums, &total);
    rows.stops[Team::rank()] = before + (row.end - row.begin);
    rows.shifts[Team::rank()] = row.begin - before;
    Team::meet();  // the rows are described
    return total;
}

// The row of a key: the first of count that stops behind it.
__device__ __forceinline__ u32 row_of_key(const offset_t* stops, u32 count, offset_t key) {
    u32 low = 0, high = count - 1;
    while (low < high) {
        const u32 middle = (low + high) / 2;
        if (stops[middle] <= key) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Each warp of the team takes an equal stretch, in whole rounds of its lanes. A table is anything that `holds` ids.
template <class Team, class Table>
__device__ __forceinline__ u32 look_up(Graph graph, const Table& table, Rows rows, Virtual, offset_t total) {
    const offset_t share = (total + Team::size() - 1) / Team::size() * WARP;
    const offset_t first = Team::rank() / WARP * share, end = min(offset_t(first + share), total);
    offset_t key = first + threadIdx.x % WARP;
    if (key >= end) return 0;
    u32 hits = 0, at = row_of_key(rows.stops, Team::size(), key);
    offset_t stop = rows.stops[at], shift = rows.shifts[at];
    for (; key < end; key += WARP) {
        if (key >= stop) {
            while (key >= rows.stops[at]) ++at;
            stop = rows.stops[at];
            shift = rows.shifts[at];
        }
        hits += holds(table, graph.heads[offset_t(key + shift)]);
    }
    return hits;
}

// Each warp of the team copies rows in turn, as far as they are among the keys.
template <class Team>
__device__ __forceinline__ void copy_rows(Graph graph, Rows rows, Stretch keys, u32* copied) {
    for (u32 at = Team::rank() / WARP; at < Team::size(); at += Team::size() / WARP) {
        const offset_t begin = max(at > 0 ? rows.stops[at - 1] : offset_t(0), keys.begin);
        const offset_t end = min(rows.stops[at], keys.end), shift = rows.shifts[at];
        for (offset_t key = begin + threadIdx.x % WARP; key < end; key += WARP)
            copied[key - keys.begin] = graph.heads[offset_t(key + shift)];
    }
}

template <class Team, class Table>
__device__ __forceinline__ u32 look_up(Graph graph, const Table& table, Rows rows, Physical how, offset_t total) {
    const u32 most = COPIED_PER_THREAD * Team::size();
    u32* const copied = how.copied + COPIED_PER_THREAD * Team::first_thread();
    u32 hits = 0;
    for (offset_t begin = 0; begin < total; begin += most) {
        const u32 length = u32(min(offset_t(total - begin), offset_t(most)));
        copy_rows<Team>(graph, rows, {begin, offset_t(begin + length)}, copied);
        Team::meet();  // all are there
        for (u32 place = Team::rank(); place < length; place += Team::size()) hits += holds(table, copied[place]);
        Team::meet();  // nobody reads them any more
    }
    return hits;
}

// Looks up the rows that some arcs lead to. At the end the team meets: table and rows are free.
template <class Team, class Table, class How>
__device__ __forceinline__ void look_up_rows(Graph graph, const Table& table, Rows rows, How how, Stretch arcs,
                                             Found* found) {
    for (offset_t first = arcs.begin; first < arcs.end; first += Team::size()) {
        const offset_t total = combine<Team>(graph, first, arcs.end, rows);
        found->triangles += look_up<Team>(graph, table, rows, how, total);
        if (Team::rank() == 0) found->tests += total;
        Team::meet();
    }
}

template <class Team, class Table>
__device__ __forceinline__ void look_up_rows(Graph graph, const Table& table, Rows, Apart how, Stretch arcs,
                                             Found* found) {
    const u32 lane = Team::rank() % how.lanes, groups = Team::size() / how.lanes;
    for (offset_t arc = arcs.begin + Team::rank() / how.lanes; arc < arcs.end; arc += groups) {
        const Stretch row = row_at(graph, arc);
        u32 hits = 0;
        for (offset_t at = row.begin + lane; at < row.end; at += how.lanes) hits += holds(table, graph.heads[at]);
        found->triangles += hits;
        if (lane == 0) found->tests += row.end - row.begin;
    }
    Team::meet();
}
