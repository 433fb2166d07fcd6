// The machine under cuda_emulation.h: a block of threads on one host thread, each with a stack of its own, or all
// blocks of a cooperative launch.
//
// A thread runs until it waits at a barrier or a warp operation, or returns; then the scheduler takes the next one, in
// ascending order in even blocks and descending in odd ones, so that what depends on the order differs between blocks.
// Blocks that run at the same time take turns, each time in the reverse order of the time before. Since it sees who
// waits for whom, a barrier that not all threads reach is an error and never a hang; and since the compiler calls us at
// every branch, so is a loop without an end.
//
// For ThreadSanitizer every thread is a fiber. Clocks say what orders what: the beginning of a launch is before all of
// its blocks, a barrier's arrivals are before its departures, and the scheduler passes nothing on from one thread or
// block to another. Thread t of block b runs as fiber (t + b) mod block size: the same thread of two blocks is two fibers.
// Blocks that run at the same time share no fibers.
//
// Most of what a launch takes are switches between threads. The C library's swapcontext asks the system for its signal
// mask each time, and AddressSanitizer's clears a whole stack: on x86-64 a switch is a few instructions of our own.
#include "cuda_emulation.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#ifdef WITH_THREAD_SANITIZER
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
constexpr unsigned WITHOUT_ORDER = 1;
#endif

#if defined(__x86_64__)
// Leaves what a callee has to keep on the stack, and that stack's pointer at `from`; goes on from the stack `to`.
asm(R"(
.text
.hidden switch_stacks
.globl switch_stacks
.type switch_stacks, @function
switch_stacks:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size switch_stacks, . - switch_stacks
)");
extern "C" void switch_stacks(void** from, void* to);

struct Context {
    void* pointer = nullptr;

    // `begin` is returned to at the first switch, with the stack as behind a call.
    void prepare(char* stack, size_t bytes, void (*begin)()) {
        void** top = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(stack + bytes) & ~uintptr_t(15));
        *--top = nullptr;
        *--top = reinterpret_cast<void*>(begin);
        for (int kept = 0; kept < 6; ++kept) *--top = nullptr;
        pointer = top;
    }

    void switch_to(Context& other) { switch_stacks(&pointer, other.pointer); }
};
#else
#include <ucontext.h>

struct Context {
    ucontext_t context;

    void prepare(char* stack, size_t bytes, void (*begin)()) {
        getcontext(&context);
        context.uc_stack.ss_sp = stack;
        context.uc_stack.ss_size = bytes;
        makecontext(&context, begin, 0);
    }

    void switch_to(Context& other) { swapcontext(&context, &other.context); }
};
#endif

namespace emulation {

Index thread_index, block_index, block_size, grid_size;

namespace {

constexpr u32 WARP_LANES = 32;
constexpr size_t STACK_BYTES = 128 << 10;
constexpr size_t DYNAMIC_ALIGNMENT = 16;
constexpr u32 DYNAMIC = ~0u;
constexpr u64 MAX_STEPS = 1ull << 28;  // of what runs at once, a second or so: what takes more does not end
constexpr u64 MEETING_STEPS = 32;       // what an arrival at meet_grid counts for: it takes as long as many
constexpr unsigned char POISON = 0xA5;  // what shared memory holds before it is written

// Two places that stand for points in time, used in turn: a thread may be at the next barrier before another has left
// the one before.
struct Clock {
    char place[2];
    u32 turn = 0;
};

enum class Waiting { nothing, block, grid, warp, returned };

struct Block;

struct Thread {
    Context context;
    std::unique_ptr<char[]> stack;
    void* fiber = nullptr;
    Block* block = nullptr;
    Thread** warp = nullptr;  // its lanes
    u32 index = 0;
    Waiting waiting = Waiting::nothing;
    WarpOperation operation;
    u32 mask, argument, width;
    u64 value, result;
    Clock warp_clock;  // of the meetings that this thread is the lowest lane of
};

struct Shared {
    u32 number;
    void* memory;
    char allocated;  // the point in time, as a place
};

// Threads that a barrier brings together.
struct Group {
    std::vector<Thread*> threads;  // those of a block by index
    Clock clock;
    u32 arrived = 0;
};

struct Block {
    u32 index;
    Group group;
    std::vector<std::unique_ptr<Shared>> shared_memory;
};

struct Launch {
    void (*kernel)(void**);
    void** arguments;
    size_t dynamic_bytes;
    bool cooperative;
};

std::vector<std::unique_ptr<Thread>> fibers;
std::vector<std::unique_ptr<Block>> blocks;  // that run now: one, or all of a cooperative launch
Group everyone;                              // in those blocks
Context scheduler;
void* scheduler_fiber;
Thread* running;
Launch launch;
char launch_begin, block_end;
u64 steps;
std::string failure;

#ifdef WITH_THREAD_SANITIZER
void release(char* place) { __tsan_release(place); }
void acquire(char* place) { __tsan_acquire(place); }
void announce_switch(void* fiber) { __tsan_switch_to_fiber(fiber, WITHOUT_ORDER); }
void* new_fiber() { return __tsan_create_fiber(0); }
void* current_fiber() { return __tsan_get_current_fiber(); }
#else
void release(char*) {}
void acquire(char*) {}
void announce_switch(void*) {}
void* new_fiber() { return nullptr; }
void* current_fiber() { return nullptr; }
#endif

void wait(Waiting reason) {
    Thread* self = running;
    self->waiting = reason;
    announce_switch(scheduler_fiber);
    self->context.switch_to(scheduler);
}

void resume(Thread* thread) {
    running = thread;
    thread_index.x = thread->index;
    block_index.x = thread->block->index;
    announce_switch(thread->fiber);
    scheduler.switch_to(thread->context);
}

[[noreturn]] void fail(const std::string& reason) {
    failure = "block " + std::to_string(running->block->index) + ": " + reason;
    for (;;) wait(running->waiting);
}

void live() {
    for (;;) {
        acquire(&launch_begin);
        launch.kernel(launch.arguments);
        release(&block_end);
        wait(Waiting::returned);
    }
}

std::unique_ptr<Thread> born() {
    auto thread = std::make_unique<Thread>();
    thread->stack.reset(new char[STACK_BYTES]);
    thread->fiber = new_fiber();
    thread->context.prepare(thread->stack.get(), STACK_BYTES, live);
    return thread;
}

const char* name_of(WarpOperation operation) {
    static const char* const names[] = {"__syncwarp",       "__shfl_sync",     "__shfl_up_sync",
                                        "__shfl_down_sync", "__shfl_xor_sync", "a ballot"};
    return names[int(operation)];
}

// Whose value a lane gets; itself where a shuffle leaves its segment of `width` lanes.
u32 source_lane(const Thread* thread) {
    const u32 lane = thread->index % WARP_LANES, width = thread->width, first = lane / width * width;
    const u32 place = lane - first, argument = thread->argument;
    switch (thread->operation) {
        case WarpOperation::shuffle: return first + argument % width;
        case WarpOperation::shuffle_up: return argument <= place ? lane - argument : lane;
        case WarpOperation::shuffle_down: return place + argument < width ? lane + argument : lane;
        case WarpOperation::shuffle_xor: return (lane ^ argument) < first + width ? lane ^ argument : lane;
        default: return lane;
    }
}

u64 result_of(const Thread* thread) {
    if (thread->operation == WarpOperation::ballot) {
        u32 ballot = 0;
        for (u32 lane = 0; lane < WARP_LANES; ++lane)
            if (thread->mask >> lane & 1) ballot |= u32(thread->warp[lane]->value) << lane;
        return ballot;
    }
    const u32 source = source_lane(thread);
    if (thread->mask >> source & 1) return thread->warp[source]->value;
    return POISON * 0x0101010101010101ull;  // undefined: that lane does not take part
}

// Whether all lanes of the caller's mask are here; fails where one of them is at another operation.
bool all_lanes_arrived(const Thread* self) {
    bool all = true;
    for (u32 lane = 0; lane < WARP_LANES; ++lane) {
        if (!(self->mask >> lane & 1)) continue;
        const Thread* other = self->warp[lane];
        if (other == self) continue;
        if (other->waiting != Waiting::warp) {
            all = false;
        } else if (other->mask != self->mask || other->operation != self->operation) {
            char text[160];
            std::snprintf(text, sizeof text, "thread %u is at %s with mask %08x, thread %u at %s with mask %08x",
                          self->index, name_of(self->operation), self->mask, other->index, name_of(other->operation),
                          other->mask);
            fail(text);
        }
    }
    return all;
}

std::string who_waits() {
    u32 at_barrier = 0, at_grid = 0, in_warps = 0, returned = 0;
    for (const Thread* thread : everyone.threads) {
        at_barrier += thread->waiting == Waiting::block;
        at_grid += thread->waiting == Waiting::grid;
        in_warps += thread->waiting == Waiting::warp;
        returned += thread->waiting == Waiting::returned;
    }
    char text[200];
    std::snprintf(text, sizeof text,
                  "of %zu threads %u wait at __syncthreads, %u at meet_grid, %u at warp operations, %u have returned",
                  everyone.threads.size(), at_barrier, at_grid, in_warps, returned);
    return (launch.cooperative ? "all blocks: " : "block " + std::to_string(blocks.front()->index) + ": ") + text;
}

void meet(Group& group, Waiting barrier) {
    char* clock = &group.clock.place[group.clock.turn % 2];
    release(clock);
    if (++group.arrived < group.threads.size()) {
        wait(barrier);
    } else {
        group.arrived = 0;
        ++group.clock.turn;
        for (Thread* thread : group.threads) thread->waiting = Waiting::nothing;
    }
    acquire(clock);
}

void* allocate_shared(u32 number, size_t bytes, size_t alignment) {
    auto& shared_memory = running->block->shared_memory;
    for (const auto& known : shared_memory)
        if (known->number == number) {
            acquire(&known->allocated);
            return known->memory;
        }
    auto fresh = std::make_unique<Shared>();
    fresh->number = number;
    if (posix_memalign(&fresh->memory, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes)) std::abort();
    std::memset(fresh->memory, POISON, bytes);
    release(&fresh->allocated);
    shared_memory.push_back(std::move(fresh));
    return shared_memory.back()->memory;
}

// The block's threads are fibers from `first_fiber` on.
std::unique_ptr<Block> begun_block(u32 index, size_t first_fiber) {
    const u32 size = block_size.x;
    auto block = std::make_unique<Block>();
    block->index = index;
    block->group.threads.resize(size);
    for (u32 place = 0; place < size; ++place) {
        Thread* thread = fibers[first_fiber + (u64(place) + index) % size].get();
        thread->block = block.get();
        thread->warp = &block->group.threads[place / WARP_LANES * WARP_LANES];
        thread->index = place;
        thread->waiting = Waiting::nothing;
        block->group.threads[place] = thread;
    }
    return block;
}

void begin_blocks(u32 first, u32 count) {
    everyone.threads.clear();
    everyone.arrived = 0;
    for (u32 place = 0; place < count; ++place) {
        blocks.push_back(begun_block(first + place, size_t(place) * block_size.x));
        const auto& threads = blocks.back()->group.threads;
        everyone.threads.insert(everyone.threads.end(), threads.begin(), threads.end());
    }
}

void end_blocks() {
    acquire(&block_end);
    for (const auto& block : blocks)
        for (const auto& known : block->shared_memory) std::free(known->memory);
    blocks.clear();
    steps = 0;
}

// Lets every thread that does not wait run until it does; whether there was one.
bool run_a_while(const Block& block) {
    const auto& threads = block.group.threads;
    const size_t size = threads.size();
    bool any_ran = false;
    for (size_t step = 0; step < size && failure.empty(); ++step) {
        Thread* thread = threads[block.index % 2 == 0 ? step : size - 1 - step];
        if (thread->waiting != Waiting::nothing) continue;
        resume(thread);
        any_ran = true;
    }
    return any_ran;
}

void run_together(u32 first, u32 count) {
    begin_blocks(first, count);
    for (bool any_ran = true; any_ran && failure.empty(); std::reverse(blocks.begin(), blocks.end())) {
        any_ran = false;
        for (const auto& block : blocks) any_ran |= run_a_while(*block);
    }
    for (const Thread* thread : everyone.threads)
        if (failure.empty() && thread->waiting != Waiting::returned) failure = who_waits();
    end_blocks();
}

}  // namespace

void meet_block() { meet(running->block->group, Waiting::block); }

void meet_grid(u32 arrivals) {
    if (!launch.cooperative) fail("a thread calls meet_grid in a launch that is not cooperative");
    if (arrivals != 0) fail("meet_grid counts arrivals from " + std::to_string(arrivals) + " on and not from zero");
    steps += MEETING_STEPS;
    meet(everyone, Waiting::grid);
}

u64 meet_warp(WarpOperation operation, u32 mask, u64 value, u32 argument, u32 width) {
    Thread* self = running;
    self->operation = operation, self->mask = mask, self->value = value;
    self->argument = argument, self->width = width;
    if (!(mask >> self->index % WARP_LANES & 1)) fail("a thread calls a warp operation whose mask leaves it out");
    Clock& shared_clock = self->warp[__builtin_ctz(mask)]->warp_clock;
    char* clock = &shared_clock.place[shared_clock.turn % 2];
    const bool orders_memory = operation == WarpOperation::synchronize;
    if (orders_memory) release(clock);
    if (all_lanes_arrived(self)) {
        ++shared_clock.turn;
        for (u32 lane = 0; lane < WARP_LANES; ++lane)
            if (mask >> lane & 1) self->warp[lane]->result = result_of(self->warp[lane]);
        for (u32 lane = 0; lane < WARP_LANES; ++lane)
            if (mask >> lane & 1) self->warp[lane]->waiting = Waiting::nothing;
    } else {
        wait(Waiting::warp);
    }
    if (orders_memory) acquire(clock);
    return self->result;
}

void* dynamic_shared() { return allocate_shared(DYNAMIC, launch.dynamic_bytes, DYNAMIC_ALIGNMENT); }

void* static_shared(u32 number, size_t bytes, size_t alignment) { return allocate_shared(number, bytes, alignment); }

const char* run(const char* name, u32 grid, u32 block, size_t dynamic_bytes, bool cooperative, void (*kernel)(void**),
                void** arguments) {
    const u32 at_once = cooperative ? grid : 1;
    launch = {kernel, arguments, dynamic_bytes, cooperative};
    block_size.x = block;
    grid_size.x = grid;
    scheduler_fiber = current_fiber();
    failure.clear();
    while (fibers.size() < size_t(at_once) * block) fibers.push_back(born());
    release(&launch_begin);
    for (u32 first = 0; first < grid && failure.empty(); first += at_once) run_together(first, at_once);
    if (failure.empty()) return nullptr;
    fibers.clear();  // their stacks hold unfinished calls
    failure = std::string(name) + ", " + failure;
    return failure.c_str();
}

}  // namespace emulation

// Gives back the memory of all threads; between launches.
extern "C" __attribute__((visibility("default"))) void release_threads() { emulation::fibers.clear(); }

// Called by kernels in every basic block (-fsanitize-coverage=trace-pc).
extern "C" void __sanitizer_cov_trace_pc() {
    if (++emulation::steps > emulation::MAX_STEPS) emulation::fail("a thread does not come to an end");
}
