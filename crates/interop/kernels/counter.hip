extern "C" __global__ void times(unsigned int *x, unsigned int k)
{
    x[blockIdx.x * blockDim.x + threadIdx.x] *= k;
}
