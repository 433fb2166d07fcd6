// What: kernels with one fault each, and sound ones; the harness must tell them apart.
#include "common/grid.cuh"
#include "common/reduce.cuh"

#define TABLE 64u
#define FIRST_VALUE 8  // far enough from values[0] for ThreadSanitizer, which remembers few accesses of one place

// Every thread passes a number to the next one, through all kinds of memory and exchange.
extern "C" __global__ void sound(u32* values, u32 length, u64* found) {
    __shared__ u32 table[TABLE];
    DYNAMIC_SHARED(uint4, dynamic);
    const u32 next = (threadIdx.x + 1) % blockDim.x;
    table[threadIdx.x] = threadIdx.x;
    dynamic[threadIdx.x] = make_uint4(threadIdx.x, 0, 0, 1);
    __syncthreads();
    const u32 sum = table[next] + dynamic[next].x + dynamic[next].w;
    __syncwarp();
    for (u32 at = blockIdx.x * blockDim.x + threadIdx.x; at < length; at += gridDim.x * blockDim.x) values[at] = at;
    add_found(found, sum);
}

extern "C" __global__ void overrun_array(u32* values, u32 length, u64* found) {
    if (threadIdx.x == 0) values[length] = 1;
}

extern "C" __global__ void overrun_dynamic(u32* values, u32 length, u64* found) {
    DYNAMIC_SHARED(uint4, dynamic);
    dynamic[threadIdx.x + 1].x = 1;
}

__device__ __forceinline__ void write_one(u32* place) { *place = 1; }

extern "C" __global__ void overrun_table(u32* values, u32 length, u64* found) {
    __shared__ u32 table[TABLE];
    write_one(table + threadIdx.x + 1);
}

extern "C" __global__ void shift_too_far(u32* values, u32 length, u64* found) {
    values[0] = 1u << (32 + threadIdx.x);
}

extern "C" __global__ void load_between(u32* values, u32 length, u64* found) {
    values[0] = reinterpret_cast<const uint4*>(values + 1)->x;
}

extern "C" __global__ void miss_barrier(u32* values, u32 length, u64* found) {
    __shared__ u32 table[TABLE];
    table[threadIdx.x] = threadIdx.x;
    add_found(found, table[(threadIdx.x + 1) % blockDim.x]);
}

extern "C" __global__ void miss_second_barrier(u32* values, u32 length, u64* found) {
    __shared__ u32 table[TABLE];
    for (u32 round = 0; round < 2; ++round) {
        table[threadIdx.x] = round;
        __syncthreads();
        add_found(found, table[(threadIdx.x + 1) % blockDim.x]);
    }
}

extern "C" __global__ void trust_shuffle(u32* values, u32 length, u64* found) {
    __shared__ u32 table[TABLE];
    table[threadIdx.x] = threadIdx.x;
    const u32 next = __shfl_sync(ALL_LANES, threadIdx.x, threadIdx.x + 1);
    add_found(found, table[next]);
}

extern "C" __global__ void add_without_atomics(u32* values, u32 length, u64* found) {
    if (threadIdx.x == 0) *found += 1;
}

extern "C" __global__ void leave_before_barrier(u32* values, u32 length, u64* found) {
    if (threadIdx.x == 5) return;
    __syncthreads();
}

extern "C" __global__ void shuffle_in_branch(u32* values, u32 length, u64* found) {
    if (threadIdx.x % 2 == 0) found[0] = __shfl_xor_sync(ALL_LANES, threadIdx.x, 2);
}

extern "C" __global__ void disagree_on_mask(u32* values, u32 length, u64* found) {
    __syncwarp(threadIdx.x < 16 ? 0x0001FFFFu : ALL_LANES);
}

extern "C" __global__ void never_end(u32* values, u32 length, u64* found) {
    for (u32 at = threadIdx.x; at < length; at += threadIdx.x / blockDim.x) values[at] = at;
}

extern "C" __global__ void read_before_write(u32* values, u32 length, u64* found) {
    __shared__ u32 table[TABLE];
    if (threadIdx.x == 0) values[blockIdx.x] = table[0];
    __syncwarp();
    table[threadIdx.x] = 1;
}

// Cooperative: values[0] counts arrivals, and every block passes a number to the next one, twice.
extern "C" __global__ void sound_grid(u32* values, u32 length, u64* found) {
    const u32 next = (blockIdx.x + 1) % gridDim.x;
    for (u32 round = 0; round < 2; ++round) {
        if (threadIdx.x == round) values[FIRST_VALUE + blockIdx.x] = round + blockIdx.x;
        meet_grid(values);
        if (threadIdx.x == 0) atomicAdd(found, u64(values[FIRST_VALUE + next]));
        meet_grid(values);
    }
}

extern "C" __global__ void miss_grid(u32* values, u32 length, u64* found) {
    if (threadIdx.x == 0) values[FIRST_VALUE + blockIdx.x] = blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(found, u64(values[FIRST_VALUE + (blockIdx.x + 1) % gridDim.x]));
    meet_grid(values);
}

extern "C" __global__ void miss_second_grid(u32* values, u32 length, u64* found) {
    for (u32 round = 0; round < 2; ++round) {
        if (threadIdx.x == 0) values[FIRST_VALUE + blockIdx.x] = round;
        meet_grid(values);
        if (threadIdx.x == 0) atomicAdd(found, u64(values[FIRST_VALUE + (blockIdx.x + 1) % gridDim.x]));
        __syncthreads();
    }
}

extern "C" __global__ void trust_barrier_of_block(u32* values, u32 length, u64* found) {
    if (threadIdx.x == 0 && blockIdx.x == 0) values[FIRST_VALUE] = 1;
    __syncthreads();
    if (threadIdx.x == 5 && blockIdx.x == 1) found[0] = values[FIRST_VALUE];
}

extern "C" __global__ void trust_atomics_between_blocks(u32* values, u32 length, u64* found) {
    if (threadIdx.x == 0 && blockIdx.x == 0) values[FIRST_VALUE] = 1;
    __threadfence();
    atomicAdd(found, 1ull);
    __threadfence();
    if (threadIdx.x == 0 && blockIdx.x == 1) atomicAdd(found, u64(values[FIRST_VALUE]));
    meet_grid(values);
}

extern "C" __global__ void leave_block_before_grid(u32* values, u32 length, u64* found) {
    if (blockIdx.x == 1) return;
    meet_grid(values);
}

extern "C" __global__ void leave_thread_before_grid(u32* values, u32 length, u64* found) {
    if (blockIdx.x == 1 && threadIdx.x == 5) return;
    meet_grid(values);
}

extern "C" __global__ void meet_at_two_places(u32* values, u32 length, u64* found) {
    if (blockIdx.x == 2) __syncthreads();
    if (blockIdx.x == 2 && threadIdx.x == 5) __syncthreads();
    else meet_grid(values);
}

extern "C" __global__ void count_from_one(u32* values, u32 length, u64* found) {
    if (threadIdx.x == 0) atomicExch(values, 1u);
    __syncthreads();
    meet_grid(values);
}

extern "C" __global__ void never_end_meeting(u32* values, u32 length, u64* found) {
    while (length > 0) meet_grid(values);
}
