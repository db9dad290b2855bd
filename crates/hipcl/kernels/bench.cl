/* A few operations for each word, so that the kernel takes about as long as its memory. */
__kernel void bench_stage(__global float4 *x)
{
    size_t i = get_global_id(0);
    float4 v = x[i];
    for (int n = 0; n < 8; ++n)
        v = v * 0.999f + 0.001f;
    x[i] = v;
}
