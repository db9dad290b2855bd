/* An OpenCL library that knows cl_mem only, clFFT, works in place on memory that rocBLAS then reads: spectra of all channels,
 * then their covariance, R = X^H X, without a copy between the two. clFFT is used as it is packaged (Debian: libclfft2).
 *
 *   cc -std=c11 clfft.c -I PREFIX/include -L PREFIX/lib -lhipcl -Wl,-rpath,PREFIX/lib -ldl -lm -o clfft
 *
 * `cargo xtask capi PREFIX` makes PREFIX; `cargo xtask setup --clfft` fetches clFFT without root. */
#include "clfft_calls.h"

#include <math.h>

enum { SAMPLES = 256, CHANNELS = 8, COUNT = SAMPLES * CHANNELS };

static void ok(hipcl_status status) {
    if (status != HIPCL_SUCCESS) {
        fprintf(stderr, "%s: %s\n", hipcl_status_name(status), hipcl_last_error());
        exit(EXIT_FAILURE);
    }
}

int main(void) {
    hipcl_bridge bridge;
    hipcl_buffer x, r;
    hipcl_queue queue;
    ok(hipcl_bridge_open(NULL, &bridge));
    if (!fft_load()) {
        ok(hipcl_bridge_destroy(bridge));
        return EXIT_SUCCESS;
    }
    ok(hipcl_buffer_create(bridge, sizeof(struct hipcl_complex) * COUNT, &x));
    ok(hipcl_buffer_create(bridge, sizeof(struct hipcl_complex) * CHANNELS * CHANNELS, &r));
    ok(hipcl_queue_create(bridge, &queue));

    /* The memory has to be a buffer object for a library that takes no other: not on the routes by SVM pointers. */
    hipcl_access access;
    struct _cl_mem *object;
    ok(hipcl_access_begin_queue(x, queue, HIPCL_ACCESS_WRITE, &access));
    if (hipcl_access_cl_mem(access, &object) != HIPCL_SUCCESS) {
        printf("skipped: %s\n", hipcl_last_error());
        return EXIT_SUCCESS;
    }
    ok(hipcl_access_end(access));

    /* A tone in each channel, and another one that all share. */
    static struct hipcl_complex samples[COUNT];
    const double turn = 2.0 * acos(-1.0) / SAMPLES;
    for (int channel = 0; channel < CHANNELS; channel++) {
        for (int i = 0; i < SAMPLES; i++) {
            const double own = turn * (3 + 5 * channel) * i, shared = turn * 100 * i;
            samples[channel * SAMPLES + i].re = (float)(cos(own) + 0.5 * cos(shared));
            samples[channel * SAMPLES + i].im = (float)(sin(own) + 0.5 * sin(shared));
        }
    }
    ok(hipcl_buffer_upload(x, samples, sizeof samples));

    /* clFFT plans on the bridge's context and works on the buffer between begin and end. */
    struct hipcl_native_handles native = {.struct_size = sizeof native};
    ok(hipcl_bridge_native(bridge, &native));
    struct _cl_command_queue *raw;
    ok(hipcl_queue_native(queue, &raw));
    const size_t plan = fft_plan(native.context, raw, SAMPLES, CHANNELS);
    ok(hipcl_access_begin_queue(x, queue, HIPCL_ACCESS_WRITE, &access));
    ok(hipcl_access_cl_mem(access, &object));
    fft_forward(plan, raw, object);
    ok(hipcl_access_end(access));

    /* rocBLAS comes after it, in its own stream. */
    hipcl_stream stream;
    hipcl_blas blas;
    ok(hipcl_stream_create(bridge, &stream));
    ok(hipcl_blas_create(bridge, stream, &blas));
    const struct hipcl_complex one = {1.0f, 0.0f}, zero = {0.0f, 0.0f};
    ok(hipcl_cgemm(blas, HIPCL_OP_CONJ_TRANSPOSE, HIPCL_OP_NONE, CHANNELS, CHANNELS, SAMPLES, /* m, n, k */
                   &one, x, 0, SAMPLES, x, 0, SAMPLES, &zero, r, 0, CHANNELS));
    static struct hipcl_complex found[CHANNELS * CHANNELS];
    ok(hipcl_buffer_download(r, found, sizeof found));

    /* A tone of amplitude a is one line of a * SAMPLES: 1 + 0.25 on the diagonal, 0.25 beside it. */
    double worst = 0.0;
    for (int j = 0; j < CHANNELS; j++) {
        for (int i = 0; i < CHANNELS; i++) {
            const double expected = (i == j ? 1.25 : 0.25) * SAMPLES * SAMPLES;
            const struct hipcl_complex value = found[j * CHANNELS + i];
            worst = fmax(worst, hypot(value.re - expected, value.im) / (1.25 * SAMPLES * SAMPLES));
        }
    }
    struct hipcl_counters counters = {.struct_size = sizeof counters};
    ok(hipcl_bridge_counters(bridge, &counters));
    printf("largest relative error %.1e, copies of the data set %llu bytes\n", worst,
           (unsigned long long)counters.data_set);

    fft_end(plan);
    ok(hipcl_buffer_destroy(x));
    ok(hipcl_buffer_destroy(r));
    ok(hipcl_blas_destroy(blas));
    ok(hipcl_queue_destroy(queue));
    ok(hipcl_stream_destroy(stream));
    ok(hipcl_bridge_destroy(bridge));
    return worst < 1e-5 && counters.data_set == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
