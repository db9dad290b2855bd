// out[i] = bytes[at[i]]
extern "C" __global__ void sample(unsigned char *out, const unsigned char *bytes, const unsigned long long *at, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = bytes[at[i]];
    }
}
