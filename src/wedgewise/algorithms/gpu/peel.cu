// What: lets the edges of a graph die that have too few triangles, round by round, level by level.
// Paper: ours; that edges of one level die in rounds, and the lowest of a triangle's dying edges takes it from the others,
//   is as in H. Kabir, K. Madduri, "Parallel k-truss decomposition on multicore systems", HPEC 2017.
// Who does what: one cooperative launch goes through many phases, behind each of which all blocks meet.
//     pruning   a thread per edge: it dies if an end has too few edges
//     packing   eight threads per row, a block per long one: dead edges leave
//     counting  of the edges between the two lowest vertices of triangles; a thread per look-up. At first, unless supports
//               are known, and again where a listing leaves few edges: taking the others' triangles would cost more
//     round     blocks take dying edges together, and put the shorter rows of their ends behind each other: a thread per
//               neighbour looks it up in the longer row. Hits take a triangle from the two other edges.
//     listing   a thread per living edge: it is listed again, or dies in the next round
// Input: rows of all neighbours, each ascending, with the edges to them; tails < heads; supports unless they are counted.
// Output: of dead edges supports[edge] is the bound by which they died; when[edge] is ALIVE or not.
// Memory: 16 bytes of rows and 28 of other arrays per edge; 8 per vertex.
// Differs from the authors' code in: everything but the rounds; theirs are on a CPU.
#include "common/grid.cuh"
#include "common/occupancy.cuh"
#include "common/peel_rounds.cuh"
#include "common/peel_rows.cuh"

#ifndef MIN_PACKED
#define MIN_PACKED 4096u
#endif
#define PRUNE_SHARE 8  // of the edges, that have to go by pruning for another to follow
#define RECOUNT_SHARE 4  // so many die for each that stays: to count its triangles again costs less
#define PHASES 3u
#define ROOM_THREADS (BLOCK_THREADS < 64 ? 64 : BLOCK_THREADS)  // a multiprocessor takes no more blocks of 32 than of 64

__device__ __forceinline__ bool should_pack(const Stand& stand, u32 m) {
    if (stand.counted < m) return stand.gone > 0;  // whoever counts takes all entries for living ones
    return stand.packed >= MIN_PACKED && stand.gone >= stand.packed / 2;
}

__device__ __forceinline__ void end_pruning(Stand& stand, u32 pruned) {
    stand.gone += pruned;
    if (pruned <= stand.packed / PRUNE_SHARE) stand.is_pruned = 1;
    stand.is_done = stand.gone == stand.packed;
}

__device__ __forceinline__ void end_packing(Stand& stand) {
    stand.packed -= stand.gone;
    stand.gone = 0;
}

__device__ __forceinline__ void end_part_of_round(Stand& stand, u32 end, u32 pushed, u32 last_bound) {
    stand.tail += pushed;
    stand.gone += end - stand.head;
    stand.head = end;
    if (end < stand.end) return;
    ++stand.round;
    stand.end = stand.tail;
    if (stand.head < stand.end) return;
    stand.is_done = stand.bound >= last_bound;
    ++stand.bound;
}

// Forgets the edges that were queued, and what they would take from the others: those few are counted again.
__device__ __forceinline__ void count_anew(Stand& stand, u32 queued) {
    stand.head = stand.end;
    stand.gone += queued;
    stand.counted = 0;
    ++stand.round;
}

__device__ __forceinline__ void end_listing(Stand& stand, Tally all, u32 last_bound) {
    if (stand.which == NO_LIST) stand.gone = stand.packed - all.pushed - all.kept;
    stand.which = stand.which == 0 ? 1 : 0;
    stand.listed = all.kept;
    stand.tail += all.pushed;
    stand.end = stand.tail;
    if (all.kept == 0) {  // those that die take nothing from anyone
        stand.is_done = 1;
        stand.gone = stand.packed;
        return;
    }
    if (all.pushed >= MIN_PACKED && all.pushed / RECOUNT_SHARE >= all.kept) count_anew(stand, all.pushed);
    if (all.pushed > 0) return;
    stand.is_done = stand.bound >= last_bound || all.least > last_bound;
    stand.bound = all.least;
}

// Goes on from where the peeling stands to the end of level last_bound, for at most so many phases and edges that die or
// are counted in them. arrivals was zero before the first launch; tallies_of_phases is cleared, and is so again.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, FULL_BLOCKS * MAX_THREADS / ROOM_THREADS)
    peel(const u32* begins, u32* row_stops, u32* neighbours, u32* row_edges, u32 n, u32 first_long, const u32* tails,
         const u32* heads, u32* supports, u32* when, u32 m, u32* queue, u32* lists, u32 last_bound,
         u32 most_phases, u32 most_edges, u32* arrivals, u32* tallies_of_phases, u32* stands) {
    __shared__ Lookups lookups;
    __shared__ Waiting waiting;
    const Rows rows = {begins, row_stops, neighbours, row_edges, n, first_long};
    const Edges edges = {tails, heads, supports, when, m};
    Tally* const all_tallies = reinterpret_cast<Tally*>(tallies_of_phases);
    Stand stand = *reinterpret_cast<Stand*>(stands);
    if (threadIdx.x == 0) waiting.count = 0;
    __syncthreads();
    u32 room = most_edges;
    for (u32 phase = 0; phase < most_phases && room > 0 && !stand.is_done; ++phase, ++stand.phases) {
        Tally* const tally = all_tallies + phase % PHASES;
        if (blockIdx.x == 0 && threadIdx.x == 0) all_tallies[(phase + 1) % PHASES] = {0, 0, 0, ALIVE};
        if (should_pack(stand, m)) {
            pack_rows(rows, edges, stand.round, lookups.warp_sums);
            if (stand.counted == 0) clear_supports(edges);
            meet_grid(arrivals);
            end_packing(stand);
        } else if (!stand.is_pruned) {
            prune_edges(rows, edges, stand.bound, tally);
            meet_grid(arrivals);
            end_pruning(stand, tally->kept);
        } else if (stand.counted < m) {
            const u32 end = stand.counted + min(room, m - stand.counted);
            count_triangles(rows, edges, lookups, stand.counted, end, tally);
            meet_grid(arrivals);
            room -= end - stand.counted;
            stand.counted = end;
        } else if (stand.head < stand.end) {
            const u32 end = stand.head + min(room, stand.end - stand.head);
            let_die(rows, edges, stand, end, queue, lookups, waiting, tally);
            meet_grid(arrivals);
            room -= end - stand.head;
            end_part_of_round(stand, end, tally->pushed, last_bound);
        } else {
            u32* const next = stand.which == 0 ? lists + m : lists;
            list_living(edges, stand, queue, stand.which == 1 ? lists + m : lists, next, lookups.warp_sums, tally);
            meet_grid(arrivals);
            end_listing(stand, *tally, last_bound);
        }
    }
    meet_grid(arrivals);  // all have read what was tally, and where the peeling stood
    if (blockIdx.x == 0 && threadIdx.x < PHASES) all_tallies[threadIdx.x] = {0, 0, 0, ALIVE};
    if (blockIdx.x == 0 && threadIdx.x == 0) *reinterpret_cast<Stand*>(stands) = stand;
}
