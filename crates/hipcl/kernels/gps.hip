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

// Grid: chunks of the powers, satellite.
extern "C" __global__ void count_digits(const float* power, const Selection* selections,
                                        unsigned int* histograms, unsigned int cells,
                                        unsigned int shift, unsigned int fixed_mask)
{
    __shared__ unsigned int counts[2048];
    for (unsigned int digit = threadIdx.x; digit < 2048; digit += blockDim.x) counts[digit] = 0;
    __syncthreads();

    const unsigned long long satellite = blockIdx.y;
    const unsigned int prefix = selections[satellite].prefix;
    const unsigned int* keys = (const unsigned int*)power + satellite * cells;
    // four neighbours a thread: whole cache lines for a CPU, wide loads for a GPU
    const unsigned int chunk = (cells / gridDim.x / 4 + 1) * 4;
    const unsigned int begin = blockIdx.x * chunk;
    const unsigned int end = begin + chunk < cells ? begin + chunk : cells;
    for (unsigned int i = begin + 4 * threadIdx.x; i < end; i += 4 * blockDim.x) {
        for (unsigned int j = i; j < i + 4 && j < end; ++j) {
            const unsigned int key = keys[j];
            if ((key & fixed_mask) == prefix) atomicAdd(&counts[(key >> shift) & 2047], 1u);
        }
    }
    __syncthreads();

    unsigned int* histogram = histograms + satellite * 2048;
    for (unsigned int digit = threadIdx.x; digit < 2048; digit += blockDim.x) {
        if (counts[digit] != 0) atomicAdd(&histogram[digit], counts[digit]);
    }
}

// Grid: satellite. Leaves the histogram empty for the next pass; the last pass (shift 0) stores the median.
extern "C" __global__ void select_digit(Selection* selections, unsigned int* histograms, Peak* peaks,
                                        unsigned int satellites, unsigned int shift)
{
    const unsigned int satellite = blockIdx.x * blockDim.x + threadIdx.x;
    if (satellite >= satellites) return;
    unsigned int* histogram = histograms + satellite * 2048;
    unsigned int rank = selections[satellite].rank;
    unsigned int chosen = 0;
    bool found = false;
    for (unsigned int digit = 0; digit < 2048; ++digit) {
        const unsigned int count = histogram[digit];
        histogram[digit] = 0;
        if (!found && rank < count) {
            chosen = digit;
            found = true;
        }
        if (!found) rank -= count;
    }
    union {
        unsigned int bits;
        float value;
    } median;
    median.bits = selections[satellite].prefix | (chosen << shift);
    selections[satellite].prefix = median.bits;
    selections[satellite].rank = rank;
    if (shift == 0) peaks[satellite].median = median.value;
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
