// The HIP half of the pointwise pipeline.

struct alignas(8) c32 {
    float re, im;
};

extern "C" __global__ void scale(c32 *x, float factor, unsigned long long count) {
    const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    c32 v = x[i];
    v.re *= factor;
    v.im *= factor;
    x[i] = v;
}

extern "C" __global__ void magnitude(const c32 *x, float *squared, unsigned long long count) {
    const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const c32 v = x[i];
    squared[i] = v.re * v.re + v.im * v.im;
}
