// OpenCL half of the radar. Complex numbers are float2, real part first.
//
// A row is one block of one channel: row = block * channels + channel.

static float2 sample(__global const float2* row, int at, int count)
{
    return at >= 0 && at < count ? row[at] : (float2)(0.0f, 0.0f);
}

// out[row][n] = taper[n] * x(n + delay[channel]) for n < count, and 0 from there on: delays out, block tapered, zeros
// appended. Between samples x is the cubic through the four around it, by a Farrow filter: four fixed filters, whose
// outputs are the coefficients of a polynomial in the fraction of a sample. Outside of the row x is 0.
//
// samples: [row][count]; out: [row][padded]; whole and fraction: the delay of each channel in samples, its floor and
// what is left. Global size: padded, rows.
__kernel void align(__global const float2* samples, __global const float* taper, __global const int* whole,
                    __global const float* fraction, __global float2* out, uint channels, uint count)
{
    const int n = (int)get_global_id(0);
    const size_t row = get_global_id(1);
    const size_t padded = get_global_size(0);
    float2 y = (float2)(0.0f, 0.0f);
    if (n < (int)count) {
        __global const float2* x = samples + row * count;
        const uint channel = row % channels;
        const int at = n + whole[channel];
        const float mu = fraction[channel];
        const float2 a = sample(x, at - 1, count);
        const float2 b = sample(x, at, count);
        const float2 c = sample(x, at + 1, count);
        const float2 d = sample(x, at + 2, count);
        const float2 third = (d - a) * (1.0f / 6.0f) + (b - c) * 0.5f;
        const float2 second = (a + c) * 0.5f - b;
        const float2 first = c - b * 0.5f - a * (1.0f / 3.0f) - d * (1.0f / 6.0f);
        y = (((third * mu + second) * mu + first) * mu + b) * taper[n];
    }
    out[row * padded + n] = y;
}

// spectrum[row][k] *= filter[k]. Global size: padded, rows.
__kernel void compress(__global float2* spectrum, __global const float2* filter)
{
    const size_t k = get_global_id(0);
    const size_t at = get_global_id(1) * get_global_size(0) + k;
    const float2 x = spectrum[at];
    const float2 h = filter[k];
    spectrum[at] = (float2)(x.x * h.x - x.y * h.y, x.x * h.y + x.y * h.x);
}
