// The OpenCL half of the pointwise pipeline.

__kernel void add(__global float2 *x, float re, float im) {
    const size_t i = get_global_id(0);
    x[i] += (float2)(re, im);
}

__kernel void rotate_by(__global float2 *x, float cosine, float sine) {
    const size_t i = get_global_id(0);
    const float2 v = x[i];
    x[i] = (float2)(v.x * cosine - v.y * sine, v.x * sine + v.y * cosine);
}
