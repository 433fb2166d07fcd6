// CUDA C++ as far as the kernels use it, on a CPU: stands in front of a kernel's text. cuda_emulation.cpp is the machine.
//
// Every CUDA thread has a stack of its own and runs until it waits for others; no two run at once. Memory is ordered by
// __syncthreads and __syncwarp alone, so ThreadSanitizer sees a race wherever one of them is missing: shuffles, ballots
// and atomics exchange values and order nothing, as CUDA has it. Blocks run one after the other and nothing orders them;
// those of a cooperative launch run at the same time, and meet_grid alone orders them.
#ifndef CUDA_EMULATION_H
#define CUDA_EMULATION_H

#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>

#define EMULATED
#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define DYNAMIC_SHARED(type, name) type* name = static_cast<type*>(emulation::dynamic_shared())
#define STORE_EQUAL(place, value) __atomic_store_n(place, value, __ATOMIC_RELAXED)

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(8) uint2 { u32 x, y; };
struct alignas(16) uint4 { u32 x, y, z, w; };
struct alignas(8) ushort4 { u16 x, y, z, w; };
struct alignas(16) ulonglong2 { u64 x, y; };
inline uint2 make_uint2(u32 x, u32 y) { return {x, y}; }
inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }
inline ushort4 make_ushort4(u16 x, u16 y, u16 z, u16 w) { return {x, y, z, w}; }
inline ulonglong2 make_ulonglong2(u64 x, u64 y) { return {x, y}; }

namespace emulation {

struct Index { u32 x; };
extern Index thread_index, block_index, block_size, grid_size;  // of the thread that runs

enum class WarpOperation { synchronize, shuffle, shuffle_up, shuffle_down, shuffle_xor, ballot };

void meet_block();
void meet_grid(u32 arrivals);
u64 meet_warp(WarpOperation operation, u32 mask, u64 value = 0, u32 argument = 0, u32 width = 32);
void* dynamic_shared();
void* static_shared(u32 number, size_t bytes, size_t alignment);

// What the emulator writes for `__shared__ T name…;`, numbered by its place in the text.
template <typename T>
T& shared(u32 number) {
    return *static_cast<T*>(static_shared(number, sizeof(T), alignof(T)));
}

// Runs a whole grid, the blocks of a cooperative one at the same time; says what went wrong, or nothing.
const char* run(const char* name, u32 grid, u32 block, size_t dynamic_bytes, bool cooperative, void (*kernel)(void**),
                void** arguments);

template <typename T>
T exchange(WarpOperation operation, u32 mask, T value, u32 argument, u32 width) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles take 4 or 8 bytes");
    u64 bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    bits = meet_warp(operation, mask, bits, argument, width);
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

}  // namespace emulation

#define threadIdx emulation::thread_index
#define blockIdx emulation::block_index
#define blockDim emulation::block_size
#define gridDim emulation::grid_size

inline void __syncthreads() { emulation::meet_block(); }
inline void __syncwarp(u32 mask = ~0u) { emulation::meet_warp(emulation::WarpOperation::synchronize, mask); }
inline long long clock64() {
    static long long ticks = 0;
    return __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
}
inline void __threadfence() {}  // orders nothing by itself: what it is part of, such as meet_grid, does

// In place of common/grid.cuh. It counts for itself: `arrivals` stays zero.
inline void meet_grid(u32* arrivals) {
    emulation::meet_grid(emulation::thread_index.x == 0 ? __atomic_load_n(arrivals, __ATOMIC_RELAXED) : 0);
}

template <typename T>
T __shfl_sync(u32 mask, T value, u32 lane, u32 width = 32) {
    return emulation::exchange(emulation::WarpOperation::shuffle, mask, value, lane, width);
}
template <typename T>
T __shfl_up_sync(u32 mask, T value, u32 distance, u32 width = 32) {
    return emulation::exchange(emulation::WarpOperation::shuffle_up, mask, value, distance, width);
}
template <typename T>
T __shfl_down_sync(u32 mask, T value, u32 distance, u32 width = 32) {
    return emulation::exchange(emulation::WarpOperation::shuffle_down, mask, value, distance, width);
}
template <typename T>
T __shfl_xor_sync(u32 mask, T value, u32 lanes, u32 width = 32) {
    return emulation::exchange(emulation::WarpOperation::shuffle_xor, mask, value, lanes, width);
}
inline u32 __ballot_sync(u32 mask, bool claim) {
    return u32(emulation::meet_warp(emulation::WarpOperation::ballot, mask, claim));
}
inline bool __any_sync(u32 mask, bool claim) { return __ballot_sync(mask, claim) != 0; }
inline bool __all_sync(u32 mask, bool claim) { return __ballot_sync(mask, claim) == mask; }

inline int __popc(u32 word) { return __builtin_popcount(word); }
inline int __popcll(u64 word) { return __builtin_popcountll(word); }
inline int __ffs(u32 word) { return __builtin_ffs(int(word)); }
inline int __ffsll(u64 word) { return __builtin_ffsll((long long)(word)); }
inline int __clz(u32 word) { return word == 0 ? 32 : __builtin_clz(word); }
inline int __clzll(u64 word) { return word == 0 ? 64 : __builtin_clzll(word); }

template <typename T>
T load_racing(const T* place) { return __atomic_load_n(place, __ATOMIC_RELAXED); }
template <typename T>
void store_racing(T* place, T value) { __atomic_store_n(place, value, __ATOMIC_RELAXED); }

template <typename T>
T __ldg(const T* address) { return *address; }

inline int min(int a, int b) { return a < b ? a : b; }
inline u32 min(u32 a, u32 b) { return a < b ? a : b; }
inline u64 min(u64 a, u64 b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline u32 max(u32 a, u32 b) { return a > b ? a : b; }
inline u64 max(u64 a, u64 b) { return a > b ? a : b; }

#define EMULATE_ATOMICS(T)                                                                                     \
    inline T atomicAdd(T* address, T value) { return __atomic_fetch_add(address, value, __ATOMIC_RELAXED); }   \
    inline T atomicOr(T* address, T value) { return __atomic_fetch_or(address, value, __ATOMIC_RELAXED); }     \
    inline T atomicAnd(T* address, T value) { return __atomic_fetch_and(address, value, __ATOMIC_RELAXED); }   \
    inline T atomicExch(T* address, T value) { return __atomic_exchange_n(address, value, __ATOMIC_RELAXED); } \
    inline T atomicCAS(T* address, T expected, T value) {                                                      \
        __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);     \
        return expected;                                                                                       \
    }                                                                                                          \
    inline T atomicMax(T* address, T value) {                                                                  \
        T seen = __atomic_load_n(address, __ATOMIC_RELAXED);                                                   \
        while (seen < value && !__atomic_compare_exchange_n(address, &seen, value, false, __ATOMIC_RELAXED,    \
                                                            __ATOMIC_RELAXED)) {                               \
        }                                                                                                      \
        return seen;                                                                                           \
    }                                                                                                          \
    inline T atomicMin(T* address, T value) {                                                                  \
        T seen = __atomic_load_n(address, __ATOMIC_RELAXED);                                                   \
        while (seen > value && !__atomic_compare_exchange_n(address, &seen, value, false, __ATOMIC_RELAXED,    \
                                                            __ATOMIC_RELAXED)) {                               \
        }                                                                                                      \
        return seen;                                                                                           \
    }
EMULATE_ATOMICS(u32)
EMULATE_ATOMICS(u64)
#undef EMULATE_ATOMICS
inline u32 atomicSub(u32* address, u32 value) { return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED); }

#endif
