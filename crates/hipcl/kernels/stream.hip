// Counts the words outside of `low` to `high`: 0 if the block is the right one and whole.
extern "C" __global__ void stream_check(const float4 *x, unsigned long long count, float low, float high,
                                        unsigned int *wrong)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float4 v = x[i];
    float least = fminf(fminf(v.x, v.y), fminf(v.z, v.w));
    float most = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
    if (!(least >= low && most <= high))
        atomicAdd(wrong, 1u);
}
