// HIP half of the radar, behind the beam former. Complex numbers are pairs of float, real part first.
//
// A cell is one delay of one beam: cell = beam * delays + delay. Beams go round: the first follows the last.

// Threads of a block that looks for peaks, at most.
#define MOST_THREADS 256

// A local maximum of one beam.
struct Candidate {
    float power;  // 0: there is none
    unsigned int delay;
};

struct Peak {
    unsigned int beam;
    unsigned int delay;
    float power;  // 0: there is none
    float earlier;
    float later;
    float below;
    float above;
};

// power[cell] = sum over the blocks of |beams[block][cell]|^2, divided by `of`: the blocks of all processes. Grid: cell.
extern "C" __global__ void mean_power(const float* beams, float* power, unsigned int cells, unsigned int blocks, unsigned int of)
{
    const unsigned int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) return;
    float sum = 0.0f;
    for (unsigned int block = 0; block < blocks; ++block) {
        const float* x = beams + 2 * ((unsigned long long)block * cells + cell);
        sum += x[0] * x[0] + x[1] * x[1];
    }
    power[cell] = sum / of;
}

// The order of candidates: the larger power first, of equal ones the lower place.
__device__ static bool precedes(float power, unsigned int place, float other, unsigned int other_place)
{
    return power > other || (power == other && place < other_place);
}

// Leaves the first of the candidates of the block's threads, a power of two, in the first place of both arrays.
__device__ static void reduce(float* values, unsigned int* places)
{
    const unsigned int thread = threadIdx.x;
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half && precedes(values[thread + half], places[thread + half], values[thread], places[thread])) {
            values[thread] = values[thread + half];
            places[thread] = places[thread + half];
        }
    }
    __syncthreads();
}

// Whether no cell beside this one in another beam is larger, nor as large if that beam has the lower number.
__device__ static bool rises(float x, const float* other, unsigned int at, bool is_lower)
{
    for (unsigned int i = at - 1; i <= at + 1; ++i)
        if (is_lower ? other[i] >= x : other[i] > x) return false;
    return true;
}

// The `count` largest local maxima of each beam, largest first (of equal neighbours the one with the lowest number), and the beam's mean power over the delays at which the
// whole pulse lies in a block, `whole` from the first on. The first and the last delay are no maxima: a peak needs
// neighbours. Grid: a block a beam.
extern "C" __global__ void beam_peaks(const float* power, Candidate* candidates, float* means, unsigned int delays, unsigned int whole,
                                      unsigned int beams, unsigned int count)
{
    __shared__ float values[MOST_THREADS];
    __shared__ unsigned int places[MOST_THREADS];
    const unsigned int thread = threadIdx.x;
    const unsigned int beam = blockIdx.x;
    const float* line = power + (unsigned long long)beam * delays;
    const float* below = power + (unsigned long long)((beam + beams - 1) % beams) * delays;
    const float* above = power + (unsigned long long)((beam + 1) % beams) * delays;

    float sum = 0.0f;
    for (unsigned int delay = thread; delay < whole; delay += blockDim.x) sum += line[delay];
    values[thread] = sum;
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) values[thread] += values[thread + half];
    }
    if (thread == 0) means[beam] = values[0] / whole;
    __syncthreads();

    float last = 0.0f;
    unsigned int last_place = 0;
    for (unsigned int round = 0; round < count; ++round) {
        float largest = 0.0f;
        unsigned int place = 0xffffffffu;
        for (unsigned int delay = 1 + thread; delay + 1 < delays; delay += blockDim.x) {
            const float x = line[delay];
            const bool left = round == 0 || precedes(last, last_place, x, delay);
            if (x > largest && left && x > line[delay - 1] && x >= line[delay + 1] && rises(x, below, delay, beam > 0)
                && rises(x, above, delay, beam + 1 == beams)) {
                largest = x;
                place = delay;
            }
        }
        values[thread] = largest;
        places[thread] = place;
        reduce(values, places);
        last = values[0];
        last_place = places[0];
        if (thread == 0) {
            candidates[beam * count + round].power = last;
            candidates[beam * count + round].delay = last_place;
        }
        __syncthreads();
    }
}

// The `count` largest of all candidates with the cells around them, largest first, and the power of noise: the least of
// the beams' means, since no echo is in all of them. Grid: one block.
extern "C" __global__ void best_peaks(const float* power, const Candidate* candidates, const float* means, Peak* peaks, float* noise,
                                      unsigned int delays, unsigned int beams, unsigned int count)
{
    __shared__ float values[MOST_THREADS];
    __shared__ unsigned int places[MOST_THREADS];
    const unsigned int thread = threadIdx.x;

    float least = means[0];
    for (unsigned int beam = thread; beam < beams; beam += blockDim.x) least = means[beam] < least ? means[beam] : least;
    values[thread] = least;
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half && values[thread + half] < values[thread]) values[thread] = values[thread + half];
    }
    if (thread == 0) *noise = values[0];
    __syncthreads();

    float last = 0.0f;
    unsigned int last_place = 0;
    for (unsigned int round = 0; round < count; ++round) {
        float largest = 0.0f;
        unsigned int place = 0xffffffffu;
        for (unsigned int i = thread; i < beams * count; i += blockDim.x) {
            const float x = candidates[i].power;
            if (x > largest && (round == 0 || precedes(last, last_place, x, i))) {
                largest = x;
                place = i;
            }
        }
        values[thread] = largest;
        places[thread] = place;
        reduce(values, places);
        last = values[0];
        last_place = places[0];
        if (thread == 0) {
            Peak peak = {0, 0, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
            if (last > 0.0f) {
                const unsigned int beam = last_place / count;
                const unsigned int delay = candidates[last_place].delay;
                const float* line = power + (unsigned long long)beam * delays;
                peak.beam = beam;
                peak.delay = delay;
                peak.power = last;
                peak.earlier = line[delay - 1];
                peak.later = line[delay + 1];
                peak.below = power[(unsigned long long)((beam + beams - 1) % beams) * delays + delay];
                peak.above = power[(unsigned long long)((beam + 1) % beams) * delays + delay];
            }
            peaks[round] = peak;
        }
        __syncthreads();
    }
}
