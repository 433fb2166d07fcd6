#include "common/block_or_warp.cuh"
#include "common/peel_state.cuh"
#include "common/search.cuh"

#ifndef MAX_WAITING
#define MAX_WAITING 1024u
#endif
#define EDGES_PER_THREAD 4u
#define SHARES 4u  // of much work for each block: blocks that end early take more
#define MIN_SHARE 64u  // of edges, which a block takes at once unless there are fewer for each

// For the edges that a block takes together, one per thread at most: keys, and the list in which each is looked up.
struct Lookups {
    u64 stops[BLOCK_THREADS];  // of all keys, those up to the end of each edge's
    u64 warp_sums[BLOCK_THREADS / WARP];
    u32 keys[BLOCK_THREADS], lists[BLOCK_THREADS], lengths[BLOCK_THREADS], edges[BLOCK_THREADS];
};

// Two stretches of the entries of rows.
struct Stretches {
    u32 one, one_length, other, other_length;
};

// Edges that fell in this round, put aside by the threads of a block.
struct Waiting {
    u32 edges[MAX_WAITING];
    u32 count;
};

// Calls work(first, count) for shares of [begin, end), with all threads of the block.
template <class Work>
__device__ __forceinline__ void for_shares(u32 begin, u32 end, Tally* tally, Work work) {
    __shared__ u32 next;
    const u32 all = end - begin, per_block = all / gridDim.x + 1;
    const u32 share = min(blockDim.x, max(min(per_block, MIN_SHARE), per_block / SHARES));
    const u32 shares = all / share + (all % share > 0);
    for (u32 number = blockIdx.x; number < shares;) {
        const u32 first = begin + number * share;
        work(first, min(share, end - first));
        if (gridDim.x >= shares) return;
        if (threadIdx.x == 0) next = gridDim.x + atomicAdd(&tally->taken, 1u);
        __syncthreads();  // the next share is known
        number = next;
        __syncthreads();  // to everyone
    }
}

// The shorter of both stretches gives the keys of this thread's edge, the longer is searched; how many keys there are.
__device__ __forceinline__ u32 describe(Lookups& lookups, u32 edge, Stretches both) {
    const bool keys_are_one = both.one_length < both.other_length;
    lookups.edges[threadIdx.x] = edge;
    lookups.keys[threadIdx.x] = keys_are_one ? both.one : both.other;
    lookups.lists[threadIdx.x] = keys_are_one ? both.other : both.one;
    lookups.lengths[threadIdx.x] = keys_are_one ? both.other_length : both.one_length;
    return keys_are_one ? both.one_length : both.other_length;
}

// Calls visit(owner, place) for the places of all keys; the owner is the thread that described the edge. All threads come
// here, each with the number of its keys; the first `count` of them have edges.
template <class Visit>
__device__ __forceinline__ void for_keys(Lookups& lookups, u32 count, u32 keys, Visit visit) {
    u64 total;
    const u64 before = BlockTeam::sum_before(u64(keys), lookups.warp_sums, &total);
    lookups.stops[threadIdx.x] = before + keys;
    __syncthreads();  // all edges are described
    u32 owner = 0;
    for (u64 key = threadIdx.x; key < total; key += blockDim.x) {
        u32 high = count - 1;
        while (owner < high) {
            const u32 middle = (owner + high) / 2;
            if (lookups.stops[middle] <= key) owner = middle + 1;
            else high = middle;
        }
        visit(owner, lookups.keys[owner] + u32(key - (owner > 0 ? lookups.stops[owner - 1] : 0)));
    }
    __syncthreads();  // nobody reads the descriptions any more
}

// Where the key at a place stands in its owner's list; ALIVE if it does not.
__device__ __forceinline__ u32 look_up(const Rows& rows, const Lookups& lookups, u32 owner, u32 place) {
    const u32 wanted = rows.neighbours[place], begin = lookups.lists[owner], end = begin + lookups.lengths[owner];
    const u32 found = first_not_below(rows.neighbours, begin, end, wanted);
    return found < end && rows.neighbours[found] == wanted ? found : ALIVE;
}

// Counts the triangles of living edges among [begin, end), each at its edge between the two lowest vertices.
__device__ __forceinline__ void count_triangles(const Rows& rows, const Edges& edges, Lookups& lookups, u32 begin, u32 end,
                                                Tally* tally) {
    __shared__ u32 hits[BLOCK_THREADS];
    for_shares(begin, end, tally, [&](u32 first, u32 count) {
        u32 keys = 0;
        hits[threadIdx.x] = 0;
        if (threadIdx.x < count && edges.when[first + threadIdx.x] == ALIVE) {
            const u32 edge = first + threadIdx.x, u = edges.tails[edge], v = edges.heads[edge];
            const u32 behind_v = first_not_below(rows.neighbours, rows.begins[u], rows.stops[u], v) + 1;
            const u32 above_v = first_not_below(rows.neighbours, rows.begins[v], rows.stops[v], v);
            keys = describe(lookups, edge, {behind_v, rows.stops[u] - behind_v, above_v, rows.stops[v] - above_v});
        }
        for_keys(lookups, count, keys, [&](u32 owner, u32 place) {
            const u32 found = look_up(rows, lookups, owner, place);
            if (found == ALIVE) return;
            atomicAdd(edges.supports + rows.edges[place], 1u);
            atomicAdd(edges.supports + rows.edges[found], 1u);
            atomicAdd(hits + owner, 1u);
        });
        if (hits[threadIdx.x] > 0) atomicAdd(edges.supports + first + threadIdx.x, hits[threadIdx.x]);
    });
}

// Queues what the block's threads have put aside; all of them come here.
__device__ __forceinline__ void queue_waiting(Waiting& waiting, u32* tail, Tally* tally) {
    __shared__ u32 first;
    __syncthreads();  // nobody puts anything aside any more
    const u32 count = min(waiting.count, u32(MAX_WAITING));
    if (threadIdx.x == 0 && count > 0) first = atomicAdd(&tally->pushed, count);
    __syncthreads();  // the places are taken
    for (u32 at = threadIdx.x; at < count; at += blockDim.x) tail[first + at] = waiting.edges[at];
    if (threadIdx.x == 0) waiting.count = 0;
    __syncthreads();
}

// Takes a triangle from an edge; if that leaves it with no more than bound, it dies in the next round.
__device__ __forceinline__ void take_triangle(const Edges& edges, u32 edge, const Stand& stand, Waiting& waiting, u32* tail,
                                              Tally* tally) {
    u32* support = edges.supports + edge;
    if (int(load_racing(support)) <= int(stand.bound)) return;
    const int above = int(atomicSub(support, 1u)) - int(stand.bound);  // what others took at once may be below zero
    if (above <= 0) atomicAdd(support, 1u);
    if (above != 1) return;
    store_racing(edges.when + edge, stand.round + 1);
    const u32 at = atomicAdd(&waiting.count, 1u);
    if (at < MAX_WAITING) waiting.edges[at] = edge;
    else tail[atomicAdd(&tally->pushed, 1u)] = edge;
}

// Lets the edges queue[head, end) die. Of a triangle with two dying edges, the one with the lower number takes it from
// the third.
__device__ __forceinline__ void let_die(const Rows& rows, const Edges& edges, const Stand& stand, u32 end, u32* queue,
                                        Lookups& lookups, Waiting& waiting, Tally* tally) {
    u32* const tail = queue + stand.tail;
    for_shares(stand.head, end, tally, [&](u32 first, u32 count) {
        u32 keys = 0;
        if (threadIdx.x < count) {
            const u32 edge = queue[first + threadIdx.x], u = edges.tails[edge], v = edges.heads[edge];
            const u32 of_u = rows.begins[u], of_v = rows.begins[v];
            keys = describe(lookups, edge, {of_u, rows.stops[u] - of_u, of_v, rows.stops[v] - of_v});
        }
        for_keys(lookups, count, keys, [&](u32 owner, u32 place) {
            const u32 edge = lookups.edges[owner], one = rows.edges[place], one_when = load_racing(edges.when + one);
            if (one_when < stand.round || (one_when == stand.round && one <= edge)) return;
            const u32 found = look_up(rows, lookups, owner, place);
            if (found == ALIVE) return;
            const u32 other = rows.edges[found], other_when = load_racing(edges.when + other);
            if (other_when < stand.round) return;
            if (one_when > stand.round && (other_when > stand.round || edge < other))
                take_triangle(edges, one, stand, waiting, tail, tally);
            if (other_when > stand.round) take_triangle(edges, other, stand, waiting, tail, tally);
        });
        if (waiting.count > MAX_WAITING / 2) queue_waiting(waiting, tail, tally);
    });
    queue_waiting(waiting, tail, tally);
}

// Lists the living edges anew, but for those with at most bound triangles, which are queued; those without any take
// nothing from others and are dead at once.
__device__ __forceinline__ void list_living(const Edges& edges, const Stand& stand, u32* queue, const u32* list, u32* next,
                                            u64* warp_sums, Tally* tally) {
    __shared__ u32 first_pushed;
    __shared__ u32 first_kept;
    const u32 count = stand.which == NO_LIST ? edges.m : stand.listed, tile = EDGES_PER_THREAD * blockDim.x;
    u32 least = ALIVE;
    for (u64 first = u64(blockIdx.x) * tile; first < count; first += u64(gridDim.x) * tile) {
        u32 seen[EDGES_PER_THREAD], pushed = 0, kept = 0;  // sets of this thread's edges
        for (u32 i = 0; i < EDGES_PER_THREAD; ++i) {
            const u64 at = first + i * blockDim.x + threadIdx.x;
            if (at >= count) continue;
            const u32 edge = seen[i] = stand.which == NO_LIST ? u32(at) : list[at];
            if (edges.when[edge] != ALIVE) continue;
            const u32 support = edges.supports[edge];
            if (support > stand.bound) {
                kept |= 1u << i;
                least = min(least, support);
            } else {
                pushed |= u32(support > 0) << i;
                edges.supports[edge] = stand.bound;
                edges.when[edge] = support > 0 ? stand.round : DEAD_AT_FIRST;
            }
        }
        u32 total;
        const u32 both = u32(__popc(pushed)) << 16 | u32(__popc(kept));  // a tile has fewer than 2^16 edges
        const u32 before = BlockTeam::sum_before(both, warp_sums, &total);
        if (threadIdx.x == 0) {
            first_pushed = total >> 16 ? atomicAdd(&tally->pushed, total >> 16) : 0;
            first_kept = total & 0xFFFF ? atomicAdd(&tally->kept, total & 0xFFFF) : 0;
        }
        __syncthreads();  // the places are taken
        u32* to_queue = queue + stand.tail + first_pushed + (before >> 16);
        u32* to_list = next + first_kept + (before & 0xFFFF);
        for (u32 i = 0; i < EDGES_PER_THREAD; ++i) {
            if (pushed >> i & 1) *to_queue++ = seen[i];
            if (kept >> i & 1) *to_list++ = seen[i];
        }
        __syncthreads();  // everyone knows the places
    }
    for (u32 distance = WARP / 2; distance > 0; distance /= 2)
        least = min(least, __shfl_xor_sync(ALL_LANES, least, distance));
    if (threadIdx.x % WARP == 0 && least != ALIVE) atomicMin(&tally->least, least);
}
