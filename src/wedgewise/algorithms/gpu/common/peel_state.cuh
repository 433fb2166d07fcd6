#include "common/types.cuh"

#ifndef BLOCK_THREADS
#define BLOCK_THREADS 512  // as many as a block has
#endif
#define ALIVE 0xFFFFFFFFu
#define DEAD_AT_FIRST 0u  // rounds begin with 1
#define NO_LIST 2u

// Row v is [begins[v], stops[v]) of neighbours, ascending, and of the edges to them. Rows from first_long on are long.
struct Rows {
    const u32* begins;
    u32* stops;
    u32* neighbours;
    u32* edges;
    u32 n, first_long;
};

// The ends of edges, their triangles among the living, and the round of their death.
struct Edges {
    const u32* tails;
    const u32* heads;
    u32* supports;
    u32* when;
    u32 m;
};

// What the blocks tell each other in a phase. There are three, in turn: one is written, one was read, one is cleared.
struct Tally {
    u32 pushed;  // edges behind the tail of the queue
    u32 taken;   // shares of the work, beyond one for each block
    u32 kept;    // living edges in the next list; edges that are pruned
    u32 least;   // the least support in the next list
};

// Where the peeling stands between two phases.
struct Stand {
    u32 bound;       // edges with at most so many triangles die
    u32 round;       // in which the edges queue[head, end) die
    u32 head, end;
    u32 tail;        // of the queue: those behind end die in the next round
    u32 listed;      // edges in the list
    u32 which;       // of two lists; NO_LIST where every edge is listed
    u32 packed;      // edges that lived when the rows were packed
    u32 gone;        // of them, those that live no more
    u32 counted;     // edges whose triangles are counted
    u32 is_pruned;   // no edge dies any more for the degree of an end alone
    u32 is_done;
    u32 phases;      // so far
};
