// The spectrum of 2 * FFT_N real numbers, of which two were one complex number of a transform of length FFT_N. In place:
// a row has that transform's FFT_N numbers and room for one more.
//
//   STRIDE, DISTANCE  from a number to the next, from a row to the next
//   SCALE             the factor of the result

// Numbers k and FFT_N - k of the spectrum come from the same two numbers.
kernel void fft_halves(global const float2 *in, global float2 *out, global const float2 *roots, ulong in_offset,
                       ulong out_offset) {
    const uint k = get_global_id(0);
    const ulong row = get_global_id(1) * DISTANCE;
    const float2 a = in[in_offset + row + k * STRIDE];
    const float2 b = in[in_offset + row + (FFT_N - k) % FFT_N * STRIDE];
    const float2 even = (float2)(a.x + b.x, a.y - b.y) * 0.5f;
    // -i / 2 times a - conj b
    const float2 odd = product((float2)(a.y + b.y, b.x - a.x) * 0.5f, roots[k]);
    out[out_offset + row + k * STRIDE] = (even + odd) * SCALE;
    out[out_offset + row + (FFT_N - k) * STRIDE] = (float2)(even.x - odd.x, odd.y - even.y) * SCALE;
}
