// OpenCL half of the GPS acquisition. Complex numbers are float2, real part first.

// Moves every coarse Doppler bin to baseband: out[coarse][n] = samples[n] exp(-2 pi i n step[coarse]).
// A step is the phase advance of one sample in units of 2^-64 cycles, so whole cycles drop out of the
// product by overflow and the phase stays exact however long the signal is.
__kernel void wipe_off(__global const float2* samples, __global const ulong* steps,
                       __global float2* out)
{
    const size_t n = get_global_id(0);
    const size_t coarse = get_global_id(1);
    const ulong cycles = (ulong)n * steps[coarse];
    const float half_turns = (float)(int)(uint)(cycles >> 32) * 0x1p-31f;
    const float c = cospi(half_turns);
    const float s = sinpi(half_turns);
    const float2 x = samples[n];
    out[coarse * get_global_size(0) + n] = (float2)(x.x * c + x.y * s, x.y * c - x.x * s);
}

// out[prn][row][k] = scale * blocks[row][k] * conj(codes[prn][k]), where a row is one block of one
// coarse Doppler bin. Global size: k, row, prn.
__kernel void product(__global const float2* blocks, __global const float2* codes, float scale,
                      __global float2* out)
{
    const size_t k = get_global_id(0);
    const size_t row = get_global_id(1);
    const size_t prn = get_global_id(2);
    const size_t length = get_global_size(0);
    const size_t rows = get_global_size(1);
    const float2 x = blocks[row * length + k];
    const float2 c = codes[prn * length + k] * scale;
    out[(prn * rows + row) * length + k] =
        (float2)(x.x * c.x + x.y * c.y, x.y * c.x - x.x * c.y);
}
