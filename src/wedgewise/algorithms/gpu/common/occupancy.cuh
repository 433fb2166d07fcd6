// Bounds for kernels whose blocks of any size are to fill a multiprocessor.
#define MAX_THREADS 1024
#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000
#define FULL_BLOCKS 2  // it holds 2,048 threads: they all fit with 32 registers each
#else
#define FULL_BLOCKS 1
#endif
