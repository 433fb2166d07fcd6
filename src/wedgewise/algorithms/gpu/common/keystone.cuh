#include "common/types.cuh"

#define IDS_PER_LOAD 8u
#define NEAR_PIVOTS 32u

// Hubs are the ids from first_hub on, the nearest of them those from first_near on. Pivots are taken together in units,
// numbered by ascending pivot: each pivot below first_near is one by itself, then come groups of 32 up to n.
struct Hubs {
    u32 n, first_near, first_hub;
};

__device__ __forceinline__ u32 unit_of(Hubs hubs, u32 b) {
    return b < hubs.first_near ? b : hubs.first_near + (b - hubs.first_near) / NEAR_PIVOTS;
}

// Keys that are looked up in a list, both as places among the arcs.
struct Search {
    offset_t keys_begin, keys_end, list_begin, list_end;
};

// An item is a uint4: x, y the loads [x, y) from the owner's first pivot in a's row to its end; z the pivots, bit k for
// the k-th of the group; w the owner: the number of its unit among those that have a table.
