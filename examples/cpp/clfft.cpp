// examples/c/clfft.c in C++: clFFT, which knows cl_mem only, makes spectra of all channels in place on memory whose covariance,
// R = X^H X, rocBLAS then computes.
//
//   g++ -std=c++17 clfft.cpp -I PREFIX/include -L PREFIX/lib -lhipcl -Wl,-rpath,PREFIX/lib -ldl -o clfft
//
// `cargo xtask capi PREFIX` makes PREFIX; `cargo xtask setup --clfft` fetches clFFT without root.
#include <hipcl.hpp>

#include "../c/clfft_calls.h"

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <vector>

using Complex = std::complex<float>;

constexpr std::size_t SAMPLES = 256, CHANNELS = 8;

static int run() {
    const hipcl::Bridge bridge = hipcl::Bridge::open();
    if (!fft_load()) return EXIT_SUCCESS;
    hipcl::Buffer x = bridge.alloc<Complex>(SAMPLES * CHANNELS);
    hipcl::Buffer r = bridge.alloc<Complex>(CHANNELS * CHANNELS);
    hipcl::Queue queue = bridge.queue();

    // A tone in each channel, and another one that all share.
    std::vector<Complex> samples(SAMPLES * CHANNELS);
    const double turn = 2.0 * std::acos(-1.0) / SAMPLES;
    for (std::size_t i = 0; i < samples.size(); i++) {
        const double own = turn * static_cast<double>((3 + 5 * (i / SAMPLES)) * (i % SAMPLES));
        const double shared = turn * static_cast<double>(100 * (i % SAMPLES));
        samples[i] = Complex(std::polar(1.0, own) + std::polar(0.5, shared));
    }
    x.upload(samples.data(), samples.size());

    // clFFT works on the buffer while the access is open; rocBLAS comes after it, in its own stream.
    const std::size_t plan = fft_plan(bridge.native().context, queue.native(), SAMPLES, CHANNELS);
    {
        hipcl::Access access = x.begin(queue, HIPCL_ACCESS_WRITE);
        fft_forward(plan, queue.native(), access.cl_mem());
    }
    hipcl::Stream stream = bridge.stream();
    hipcl::Blas blas = bridge.blas(stream);
    blas.cgemm(HIPCL_OP_CONJ_TRANSPOSE, HIPCL_OP_NONE, CHANNELS, CHANNELS, SAMPLES, /* m, n, k */
               1.0f, {x, SAMPLES}, {x, SAMPLES}, 0.0f, {r, CHANNELS});
    std::vector<Complex> found(CHANNELS * CHANNELS);
    r.download(found.data(), found.size());

    // A tone of amplitude a is one line of a * SAMPLES: 1 + 0.25 on the diagonal, 0.25 beside it.
    double worst = 0.0;
    for (std::size_t i = 0; i < found.size(); i++) {
        const double expected = (i % (CHANNELS + 1) == 0 ? 1.25 : 0.25) * SAMPLES * SAMPLES;
        worst = std::fmax(worst, std::abs(std::complex<double>(found[i]) - expected) / (1.25 * SAMPLES * SAMPLES));
    }
    const hipcl_counters counters = bridge.counters();
    std::printf("largest relative error %.1e, copies of the data set %llu bytes\n", worst,
                static_cast<unsigned long long>(counters.data_set));
    fft_end(plan);
    return worst < 1e-5 && counters.data_set == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main() {
    try {
        return run();
    } catch (const hipcl::Error &error) {
        std::fprintf(stderr, "%s: %s\n", hipcl_status_name(error.status()), error.what());
        return EXIT_FAILURE;
    }
}
