// As the OpenCL half.
extern "C" __global__ void bench_stage(float4 *x, unsigned long long count)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float4 v = x[i];
    for (int n = 0; n < 8; ++n) {
        v.x = v.x * 0.999f + 0.001f;
        v.y = v.y * 0.999f + 0.001f;
        v.z = v.z * 0.999f + 0.001f;
        v.w = v.w * 0.999f + 0.001f;
    }
    x[i] = v;
}
