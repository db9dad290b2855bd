// The same word for the same place and seed as in the OpenCL half.
__device__ unsigned int pattern(unsigned long long i, unsigned int seed)
{
    unsigned int x = (unsigned int)i * 0x9E3779B9u + (unsigned int)(i >> 32) * 0x85EBCA6Bu + seed;
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    return x;
}

extern "C" __global__ void probe_fill(unsigned int *words, unsigned long long count, unsigned int seed)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        words[i] = pattern(i, seed);
}

extern "C" __global__ void probe_check(const unsigned int *words, unsigned long long count, unsigned int seed,
                                       unsigned int *mismatches)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && words[i] != pattern(i, seed))
        atomicAdd(mismatches, 1u);
}

extern "C" __global__ void probe_nothing(unsigned int *words)
{
    (void)words;
}

extern "C" __global__ void probe_copy(const float4 *from, float4 *to, unsigned long long count)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] = from[i];
}

extern "C" __global__ void probe_copy_bytes(const unsigned char *from, unsigned char *to, unsigned long long count)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] = from[i];
}
