/* OpenCL and rocBLAS on the same memory: an OpenCL kernel weights a block of samples, and rocBLAS computes the
 * covariance of its channels, R = X^H X, without a copy between the two.
 *
 *   cc -std=c11 covariance.c -I PREFIX/include -L PREFIX/lib -lhipcl -lm -Wl,-rpath,PREFIX/lib -o covariance
 *
 * `cargo xtask capi PREFIX` makes PREFIX. Without a GPU the program runs on the software device. */
#include <hipcl.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 256, CHANNELS = 8 };

/* Every call returns a status; the text names the cause and the remedy. */
static void ok(hipcl_status status) {
    if (status != HIPCL_SUCCESS) {
        fprintf(stderr, "%s: %s\n", hipcl_status_name(status), hipcl_last_error());
        exit(EXIT_FAILURE);
    }
}

static const char *const SOURCE =
    "kernel void weight(global float2 *x, uint samples) {\n"
    "    size_t i = get_global_id(0);\n"
    "    x[i] *= (i % samples) % 2 ? -0.5f : 0.5f;\n"
    "}\n";

int main(void) {
    /* A bridge pairs the two devices and proves how they share memory. */
    hipcl_bridge bridge;
    ok(hipcl_bridge_open(NULL, &bridge));

    /* Memory that both APIs see: the samples, one column for each channel, and their covariance. */
    hipcl_buffer x, r;
    ok(hipcl_buffer_create(bridge, sizeof(struct hipcl_complex) * SAMPLES * CHANNELS, &x));
    ok(hipcl_buffer_create(bridge, sizeof(struct hipcl_complex) * CHANNELS * CHANNELS, &r));

    /* ANCHOR: input */
    static struct hipcl_complex samples[SAMPLES * CHANNELS];
    for (int channel = 0; channel < CHANNELS; channel++) {
        for (int i = 0; i < SAMPLES; i++) {
            samples[channel * SAMPLES + i].re = (float)(channel + 1);
            samples[channel * SAMPLES + i].im = (float)(i % 3);
        }
    }
    ok(hipcl_buffer_upload(x, samples, sizeof samples));
    /* ANCHOR_END: input */

    /* ANCHOR: opencl */
    hipcl_queue queue;
    hipcl_program program;
    hipcl_kernel weight;
    ok(hipcl_queue_create(bridge, &queue));
    ok(hipcl_program_build(bridge, SOURCE, NULL, &program));
    ok(hipcl_kernel_create(program, "weight", &weight));

    const uint32_t column = SAMPLES;
    const struct hipcl_arg arguments[] = {
        {sizeof *arguments, HIPCL_ARG_WRITE, .buffer = x},
        {sizeof *arguments, HIPCL_ARG_VALUE, .value = &column, .bytes = sizeof column},
    };
    const struct hipcl_range range = {.struct_size = sizeof range, .dimensions = 1, .global = {SAMPLES * CHANNELS}};
    ok(hipcl_kernel_launch_on_queue(weight, queue, &range, arguments, 2));
    /* ANCHOR_END: opencl */

    /* ANCHOR: rocblas */
    hipcl_stream stream;
    hipcl_blas blas;
    ok(hipcl_stream_create(bridge, &stream));
    ok(hipcl_blas_create(bridge, stream, &blas));

    const struct hipcl_complex one = {1.0f, 0.0f}, zero = {0.0f, 0.0f};
    ok(hipcl_cgemm(blas, HIPCL_OP_CONJ_TRANSPOSE, HIPCL_OP_NONE, CHANNELS, CHANNELS, SAMPLES, /* m, n, k */
                   &one, x, 0, SAMPLES, x, 0, SAMPLES, &zero, r, 0, CHANNELS));
    /* ANCHOR_END: rocblas */

    static struct hipcl_complex covariance[CHANNELS * CHANNELS];
    ok(hipcl_buffer_download(r, covariance, sizeof covariance));

    /* ANCHOR: counters */
    struct hipcl_counters counters = {.struct_size = sizeof counters};
    ok(hipcl_bridge_counters(bridge, &counters));
    printf("input %llu bytes, result %llu bytes, copies of the data set %llu bytes\n",
           (unsigned long long)counters.input, (unsigned long long)counters.result,
           (unsigned long long)counters.data_set);
    /* ANCHOR_END: counters */

    /* The same sum on the host: the weights are +-1/2, so each product is a quarter of that of the samples. */
    double worst = 0.0;
    for (int j = 0; j < CHANNELS; j++) {
        for (int i = 0; i < CHANNELS; i++) {
            double re = 0.0, im = 0.0;
            for (int s = 0; s < SAMPLES; s++) {
                const struct hipcl_complex a = samples[i * SAMPLES + s], b = samples[j * SAMPLES + s];
                re += 0.25 * ((double)a.re * b.re + (double)a.im * b.im);
                im += 0.25 * ((double)a.re * b.im - (double)a.im * b.re);
            }
            const struct hipcl_complex found = covariance[j * CHANNELS + i];
            worst = fmax(worst, hypot(found.re - re, found.im - im) / hypot(re, im));
        }
    }
    printf("largest relative error %.1e\n", worst);

    /* In any order: objects keep what they need. */
    ok(hipcl_bridge_destroy(bridge));
    ok(hipcl_buffer_destroy(x));
    ok(hipcl_buffer_destroy(r));
    ok(hipcl_kernel_destroy(weight));
    ok(hipcl_program_destroy(program));
    ok(hipcl_blas_destroy(blas));
    ok(hipcl_queue_destroy(queue));
    ok(hipcl_stream_destroy(stream));

    const int right = worst < 1e-5 && counters.data_set == 0 && counters.input == sizeof samples;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
