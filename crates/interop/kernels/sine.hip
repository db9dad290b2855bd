// A sine wave's height at `count` places, one turn in `period` of them; then the number of the wave.
extern "C" __global__ void sine(float *curve, unsigned int count, float period, float phase, float wave)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        curve[i] = sinf(6.2831853f * (float)i / period + phase);
    if (i == count)
        curve[i] = wave;
}
