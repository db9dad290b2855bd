// Replaces each complex sample by its power, as a real number.
extern "C" __global__ void power(float2 *x, unsigned int count)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float2 v = x[i];
    x[i].x = v.x * v.x + v.y * v.y;
    x[i].y = 0.0f;
}
