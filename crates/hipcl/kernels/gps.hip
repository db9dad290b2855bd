// HIP half of the GPS acquisition, behind the fine Doppler product. Complex numbers are pairs of
// float, real part first. Powers are never negative, so their bits order as their values do.

// power[segment][i] = sum over sub-intervals of |fine[segment][sub-interval][i]|^2.
// A segment is one coarse Doppler bin of one satellite, i runs over fine bins and delays.
// Grid: i, segment.
extern "C" __global__ void power(const float* fine, float* power, unsigned int length,
                                 unsigned int sub_intervals)
{
    const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= length) return;
    const unsigned long long segment = blockIdx.y;
    const float* x = fine + 2 * (segment * sub_intervals * length + i);
    float sum = 0.0f;
    for (unsigned int s = 0; s < sub_intervals; ++s) {
        const float re = x[2ull * s * length];
        const float im = x[2ull * s * length + 1];
        sum += re * re + im * im;
    }
    power[segment * length + i] = sum;
}

// For every delay of every satellite the largest power over the Doppler rows, and its row.
// Grid: delay, satellite.
extern "C" __global__ void peak_rows(const float* power, float* best, unsigned int* best_row,
                                     unsigned int delays, unsigned int rows)
{
    const unsigned int delay = blockIdx.x * blockDim.x + threadIdx.x;
    if (delay >= delays) return;
    const unsigned long long satellite = blockIdx.y;
    const float* x = power + satellite * rows * delays + delay;
    float largest = x[0];
    unsigned int largest_row = 0;
    for (unsigned int row = 1; row < rows; ++row) {
        const float value = x[(unsigned long long)row * delays];
        const bool larger = value > largest;
        largest = larger ? value : largest;
        largest_row = larger ? row : largest_row;
    }
    best[satellite * delays + delay] = largest;
    best_row[satellite * delays + delay] = largest_row;
}

// One satellite's peak as the host reads it.
struct Peak {
    unsigned int row;
    unsigned int delay;
    float power;
    float earlier;  // one sample before, in a circle
    float later;    // one sample behind
    float below;    // one row below; 0 at the edge
    float above;    // one row above; 0 at the edge
    float median;
};

// The peak of every satellite and its neighbours. Of equal powers the one at the smallest delay wins.
// One block of 256 threads a satellite.
extern "C" __global__ void peak_delays(const float* power, const float* best,
                                       const unsigned int* best_row, Peak* peaks,
                                       unsigned int delays, unsigned int rows)
{
    __shared__ float values[256];
    __shared__ unsigned int places[256];
    const unsigned int thread = threadIdx.x;
    const unsigned long long satellite = blockIdx.x;
    const float* candidates = best + satellite * delays;

    float largest = -1.0f;
    unsigned int place = 0;
    for (unsigned int delay = thread; delay < delays; delay += 256) {
        if (candidates[delay] > largest) {
            largest = candidates[delay];
            place = delay;
        }
    }
    values[thread] = largest;
    places[thread] = place;
    __syncthreads();
    for (unsigned int half = 128; half > 0; half /= 2) {
        if (thread < half) {
            const float other = values[thread + half];
            const bool larger = other > values[thread]
                || (other == values[thread] && places[thread + half] < places[thread]);
            if (larger) {
                values[thread] = other;
                places[thread] = places[thread + half];
            }
        }
        __syncthreads();
    }
    if (thread == 0) {
        const unsigned int delay = places[0];
        const unsigned int row = best_row[satellite * delays + delay];
        const float* line = power + (satellite * rows + row) * delays;
        Peak* peak = peaks + satellite;
        peak->row = row;
        peak->delay = delay;
        peak->power = values[0];
        peak->earlier = line[delay == 0 ? delays - 1 : delay - 1];
        peak->later = line[delay + 1 == delays ? 0 : delay + 1];
        peak->below = row == 0 ? 0.0f : (line - delays)[delay];
        peak->above = row + 1 == rows ? 0.0f : (line + delays)[delay];
    }
}

// Exact median by radix selection: three passes fix 11, 11 and 10 bits of the answer, the sign first
// (the last pass sees 11, of which the highest is fixed already).
// A pass counts, among the powers that agree with what is already fixed, how often each value of the
// next bits occurs; `select_digit` then finds the value in which the wanted rank falls.
struct Selection {
    unsigned int prefix;  // bits fixed so far, at their place
    unsigned int rank;    // how many of the powers that agree with them lie below the median
};

// Four powers that lie on 16 bytes: one wide load.
struct alignas(16) Four {
    unsigned int keys[4];
};

// Histograms that the threads of a block keep, at most: neighbours count into different ones, since most powers have one of few digits
// and neighbours would wait for each other.
#define MOST_COPIES 4

__device__ static void tally(unsigned int* counts, unsigned int key, unsigned int prefix, unsigned int fixed_mask, unsigned int shift,
                             unsigned int copies, unsigned int copy)
{
    if ((key & fixed_mask) == prefix) atomicAdd(&counts[((key >> shift) & 2047) * copies + copy], 1u);
}

// Grid: chunks of the powers, satellite.
extern "C" __global__ void count_digits(const float* __restrict__ power, const Selection* selections,
                                        unsigned int* histograms, unsigned int cells,
                                        unsigned int shift, unsigned int fixed_mask, unsigned int copies)
{
    __shared__ unsigned int counts[2048 * MOST_COPIES];
    for (unsigned int i = threadIdx.x; i < 2048 * copies; i += blockDim.x) counts[i] = 0;
    __syncthreads();

    const unsigned long long satellite = blockIdx.y;
    const unsigned int prefix = selections[satellite].prefix;
    const unsigned int copy = threadIdx.x % copies;
    // a satellite's powers begin anywhere, the fours within them on 16 bytes
    const unsigned long long first = satellite * cells;
    const unsigned long long last = first + cells;
    const unsigned int* keys = (const unsigned int*)power;
    const Four* fours = (const Four*)power;
    const unsigned long long all_begin = (first + 3) / 4;
    const unsigned long long all_end = last / 4;
    const unsigned long long chunk = (all_end - all_begin + gridDim.x - 1) / gridDim.x;
    const unsigned long long begin = all_begin + blockIdx.x * chunk;
    const unsigned long long end = begin + chunk < all_end ? begin + chunk : all_end;
    const unsigned long long step = blockDim.x;
    unsigned long long i = begin + threadIdx.x;
    // several loads on their way before the first of them is counted
    for (; i + 3 * step < end; i += 4 * step) {
        const Four a = fours[i], b = fours[i + step], c = fours[i + 2 * step], d = fours[i + 3 * step];
        for (int j = 0; j < 4; ++j) tally(counts, a.keys[j], prefix, fixed_mask, shift, copies, copy);
        for (int j = 0; j < 4; ++j) tally(counts, b.keys[j], prefix, fixed_mask, shift, copies, copy);
        for (int j = 0; j < 4; ++j) tally(counts, c.keys[j], prefix, fixed_mask, shift, copies, copy);
        for (int j = 0; j < 4; ++j) tally(counts, d.keys[j], prefix, fixed_mask, shift, copies, copy);
    }
    for (; i < end; i += step) {
        const Four a = fours[i];
        for (int j = 0; j < 4; ++j) tally(counts, a.keys[j], prefix, fixed_mask, shift, copies, copy);
    }
    // at most three before the first four and three behind the last
    if (blockIdx.x == 0 && threadIdx.x < 6) {
        const unsigned int beside = threadIdx.x % 3;
        const bool before = threadIdx.x < 3;
        const unsigned long long at = before ? first + beside : 4 * all_end + beside;
        if (at < (before ? 4 * all_begin : last)) tally(counts, keys[at], prefix, fixed_mask, shift, copies, copy);
    }
    __syncthreads();

    unsigned int* histogram = histograms + satellite * 2048;
    for (unsigned int digit = threadIdx.x; digit < 2048; digit += blockDim.x) {
        unsigned int count = 0;
        for (unsigned int k = 0; k < copies; ++k) count += counts[digit * copies + k];
        if (count != 0) atomicAdd(&histogram[digit], count);
    }
}

// Threads that select, and how many digits each looks at.
#define SELECTORS 64
#define DIGITS_EACH (2048 / SELECTORS)

// One block of SELECTORS threads a satellite. Leaves the histogram empty for the next pass; the last pass (shift 0) stores the median.
extern "C" __global__ void select_digit(Selection* selections, unsigned int* histograms, Peak* peaks, unsigned int shift)
{
    __shared__ unsigned int sums[SELECTORS];
    const unsigned int thread = threadIdx.x;
    const unsigned long long satellite = blockIdx.x;
    Selection* selection = selections + satellite;
    unsigned int* histogram = histograms + satellite * 2048 + thread * DIGITS_EACH;
    unsigned int sum = 0;
    for (unsigned int digit = 0; digit < DIGITS_EACH; ++digit) sum += histogram[digit];
    sums[thread] = sum;
    const unsigned int rank = selection->rank;
    const unsigned int prefix = selection->prefix;
    __syncthreads();

    unsigned int below = 0;
    for (unsigned int other = 0; other < thread; ++other) below += sums[other];
    // the wanted rank is among the digits of exactly one thread
    if (rank >= below && rank < below + sum) {
        unsigned int digit = 0;
        while (rank >= below + histogram[digit]) below += histogram[digit++];
        union {
            unsigned int bits;
            float value;
        } median;
        median.bits = prefix | ((thread * DIGITS_EACH + digit) << shift);
        selection->prefix = median.bits;
        selection->rank = rank - below;
        if (shift == 0) peaks[satellite].median = median.value;
    }
    for (unsigned int digit = 0; digit < DIGITS_EACH; ++digit) histogram[digit] = 0;
}

// Grid: satellite. Starts a selection of the power with `rank` others below it.
extern "C" __global__ void select_begin(Selection* selections, unsigned int* histograms,
                                        unsigned int satellites, unsigned int rank)
{
    const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= satellites * 2048) return;
    histograms[i] = 0;
    if (i < satellites) {
        selections[i].prefix = 0;
        selections[i].rank = rank;
    }
}
