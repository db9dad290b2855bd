/* What is computed: products, batches, inverses, transforms, kernels under open accesses; and how each failure is told. */
#include "check.h"

#include <math.h>

static hipcl_bridge bridge;
static hipcl_queue queue;
static hipcl_stream stream;
static hipcl_blas blas;

static const struct hipcl_complex ONE = {1.0f, 0.0f}, ZERO = {0.0f, 0.0f};

static hipcl_buffer filled(const struct hipcl_complex *numbers, size_t count) {
    hipcl_buffer buffer;
    OK(hipcl_buffer_create(bridge, count * sizeof *numbers, &buffer));
    OK(hipcl_buffer_upload(buffer, numbers, count * sizeof *numbers));
    return buffer;
}

static int near(struct hipcl_complex found, double re, double im) {
    return hypot(found.re - re, found.im - im) <= 1e-4 * (1.0 + hypot(re, im));
}

/* Numbers that no two places share. */
static void number(struct hipcl_complex *numbers, int count) {
    for (int i = 0; i < count; i++) {
        numbers[i].re = (float)(i % 7) - 3.0f;
        numbers[i].im = (float)(i % 5) * 0.5f;
    }
}

/* Three products of 2 x 3 by 3 x 2 matrices, by one call and one by one with offsets. */
static void products(void) {
    enum { M = 2, N = 2, K = 3, COUNT = 3 };
    struct hipcl_complex a[M * K * COUNT], b[K * N * COUNT], c[M * N * COUNT], single[M * N * COUNT];
    number(a, M * K * COUNT);
    number(b, K * N * COUNT);
    memset(c, 0, sizeof c);
    hipcl_buffer in_a = filled(a, M * K * COUNT), in_b = filled(b, K * N * COUNT), out = filled(c, M * N * COUNT);
    OK(hipcl_cgemm_strided_batched(blas, HIPCL_OP_NONE, HIPCL_OP_NONE, M, N, K, &ONE, in_a, 0, M, M * K, in_b, 0, K,
                                   K * N, &ZERO, out, 0, M, M * N, COUNT));
    OK(hipcl_buffer_download(out, c, sizeof c));
    for (size_t i = 0; i < COUNT; i++) {
        OK(hipcl_cgemm(blas, HIPCL_OP_NONE, HIPCL_OP_NONE, M, N, K, &ONE, in_a, i * M * K, M, in_b, i * K * N, K, &ZERO,
                       out, i * M * N, M));
    }
    OK(hipcl_buffer_download(out, single, sizeof single));
    for (int index = 0; index < COUNT; index++) {
        for (int col = 0; col < N; col++) {
            for (int row = 0; row < M; row++) {
                double re = 0, im = 0;
                for (int k = 0; k < K; k++) {
                    struct hipcl_complex x = a[index * M * K + k * M + row], y = b[index * K * N + col * K + k];
                    re += x.re * y.re - x.im * y.im;
                    im += x.re * y.im + x.im * y.re;
                }
                int at = index * M * N + col * M + row;
                CHECK(near(c[at], re, im) && near(single[at], re, im));
            }
        }
    }
    FAILS(HIPCL_ERROR_BUSY, "`c` is in use",
          hipcl_cgemm(blas, HIPCL_OP_NONE, HIPCL_OP_NONE, 2, 2, 2, &ONE, in_a, 0, 2, in_a, 0, 2, &ZERO, in_a, 0, 2));
    FAILS(HIPCL_ERROR_ARGUMENT, "hipcl_cgemm: gemm: a: ",
          hipcl_cgemm(blas, HIPCL_OP_NONE, HIPCL_OP_NONE, 2, 2, 2000, &ONE, in_a, 0, 2, in_b, 0, 2000, &ZERO, out, 0, 2));
    OK(hipcl_buffer_destroy(in_a));
    OK(hipcl_buffer_destroy(in_b));
    OK(hipcl_buffer_destroy(out));
}

/* A batch of inverses times its matrices is the identity; one that is not positive definite is told, the others hold. */
static void inverses(void) {
    enum { N = 3, COUNT = 3, ALL = N * N * COUNT };
    struct hipcl_complex a[ALL], inverse[ALL], product[ALL];
    memset(a, 0, sizeof a);
    for (int index = 0; index < COUNT; index++) {
        struct hipcl_complex *one = a + index * N * N;
        for (int i = 0; i < N; i++) one[i * N + i].re = 4.0f + (float)(index + i);
        one[N].re = 1.0f, one[N].im = 0.5f;
        one[1].re = 1.0f, one[1].im = -0.5f;
    }
    hipcl_buffer matrices = filled(a, ALL), inverses = filled(a, ALL), out = filled(a, ALL);
    size_t failed = 99;
    OK(hipcl_cinverse_hermitian(blas, HIPCL_FILL_UPPER, N, inverses, 0, N, N * N, COUNT, &failed));
    CHECK(failed == 0);
    OK(hipcl_cgemm_strided_batched(blas, HIPCL_OP_NONE, HIPCL_OP_NONE, N, N, N, &ONE, matrices, 0, N, N * N, inverses, 0,
                                   N, N * N, &ZERO, out, 0, N, N * N, COUNT));
    OK(hipcl_buffer_download(out, product, sizeof product));
    for (int i = 0; i < ALL; i++) CHECK(near(product[i], i % (N * N) % (N + 1) == 0, 0));

    OK(hipcl_buffer_download(inverses, inverse, sizeof inverse));
    a[N * N].re = -4.0f;
    OK(hipcl_buffer_upload(inverses, a, sizeof a));
    FAILS(HIPCL_ERROR_NUMERIC, "matrix 1 of 3: the matrix is not positive definite",
          hipcl_cinverse_hermitian(blas, HIPCL_FILL_UPPER, N, inverses, 0, N, N * N, COUNT, &failed));
    CHECK(failed == 1);
    OK(hipcl_buffer_download(inverses, product, sizeof product));
    for (int i = 0; i < N * N; i++) {
        CHECK(near(product[i], inverse[i].re, inverse[i].im));
        CHECK(near(product[2 * N * N + i], inverse[2 * N * N + i].re, inverse[2 * N * N + i].im));
    }
    /* One matrix, the second, by its offset. */
    OK(hipcl_buffer_upload(inverses, a, sizeof a));
    FAILS(HIPCL_ERROR_NUMERIC, "hipcl_cinverse_hermitian: the matrix",
          hipcl_cinverse_hermitian(blas, HIPCL_FILL_LOWER, N, inverses, N * N, N, 0, 1, NULL));
    OK(hipcl_buffer_destroy(matrices));
    OK(hipcl_buffer_destroy(inverses));
    OK(hipcl_buffer_destroy(out));
}

/* A transform against its sum, on a queue and on a stream, out of place and back in place. */
static void transforms(void) {
    enum { LEN = 30, BATCH = 2, ALL = LEN * BATCH };
    const double tau = 6.283185307179586;
    struct hipcl_complex x[ALL], found[ALL];
    number(x, ALL);
    hipcl_buffer input = filled(x, ALL), output = filled(x, ALL);
    hipcl_fft fft;
    FAILS(HIPCL_ERROR_ARGUMENT, "must not be zero", hipcl_fft_create(bridge, 0, 1, &fft));
    OK(hipcl_fft_create(bridge, LEN, BATCH, &fft));
    for (int on_stream = 0; on_stream < 2; on_stream++) {
        OK(on_stream ? hipcl_fft_enqueue_on_stream(fft, stream, HIPCL_FFT_FORWARD, input, output)
                     : hipcl_fft_enqueue_on_queue(fft, queue, HIPCL_FFT_FORWARD, input, output));
        OK(hipcl_buffer_download(output, found, sizeof found));
        for (int row = 0; row < BATCH; row++) {
            for (int k = 0; k < LEN; k++) {
                double re = 0, im = 0;
                for (int n = 0; n < LEN; n++) {
                    double angle = -tau * k * n / LEN;
                    struct hipcl_complex in = x[row * LEN + n];
                    re += in.re * cos(angle) - in.im * sin(angle);
                    im += in.re * sin(angle) + in.im * cos(angle);
                }
                CHECK(near(found[row * LEN + k], re, im));
            }
        }
        OK(on_stream ? hipcl_fft_enqueue_on_stream(fft, stream, HIPCL_FFT_INVERSE, output, output)
                     : hipcl_fft_enqueue_on_queue(fft, queue, HIPCL_FFT_INVERSE, output, output));
        OK(hipcl_buffer_download(output, found, sizeof found));
        for (int i = 0; i < ALL; i++) CHECK(near(found[i], LEN * x[i].re, LEN * x[i].im));
    }
    hipcl_buffer small = filled(x, 1);
    FAILS(HIPCL_ERROR_ARGUMENT, "`input` has 8 bytes",
          hipcl_fft_enqueue_on_stream(fft, stream, HIPCL_FFT_FORWARD, small, output));
    FAILS(HIPCL_ERROR_ARGUMENT, "`output` has 8 bytes",
          hipcl_fft_enqueue_on_queue(fft, queue, HIPCL_FFT_FORWARD, input, small));
    OK(hipcl_buffer_destroy(small));
    OK(hipcl_fft_destroy(fft));
    OK(hipcl_buffer_destroy(input));
    OK(hipcl_buffer_destroy(output));
}

/* Rows of 20 real numbers, windowed, in a transform of 31, two numbers apart: against the sum, and back. */
static void transforms_with_options(void) {
    enum { LEN = 31, ROW = 20, BATCH = 3, HALF = LEN / 2 + 1, GAP = 2 * HALF + 1 };
    const double tau = 6.283185307179586;
    float x[ROW * BATCH], window[ROW], back[LEN * BATCH];
    struct hipcl_complex found[GAP * BATCH];
    for (int i = 0; i < ROW; i++) window[i] = 0.5f + (float)(i % 3);
    for (int i = 0; i < ROW * BATCH; i++) x[i] = (float)(i * 7 % 11) - 5.0f;
    hipcl_buffer input, output, real;
    OK(hipcl_buffer_create(bridge, sizeof x, &input));
    OK(hipcl_buffer_upload(input, x, sizeof x));
    OK(hipcl_buffer_create(bridge, sizeof found, &output));
    OK(hipcl_buffer_create(bridge, sizeof back, &real));

    struct hipcl_fft_options options = {.struct_size = sizeof options};
    hipcl_fft forward, inverse, other;
    OK(hipcl_fft_options_init(&options));
    CHECK(options.struct_size == sizeof options && options.batch == 1 && options.output_scale == 1.0f);
    FAILS(HIPCL_ERROR_ARGUMENT, "the length of an FFT must not be zero", hipcl_fft_create_with(bridge, &options, &other));
    options.length = LEN;
    options.batch = BATCH;
    options.input_length = LEN + 1;
    FAILS(HIPCL_ERROR_ARGUMENT, "`input_len`: a row of 32 numbers", hipcl_fft_create_with(bridge, &options, &other));
    options.window = window;
    FAILS(HIPCL_ERROR_ARGUMENT, "`options.input_length` is 32", hipcl_fft_create_with(bridge, &options, &other));
    options.input_length = ROW;
    options.kind = 9;
    FAILS(HIPCL_ERROR_ARGUMENT, "HIPCL_FFT_REAL_TO_COMPLEX", hipcl_fft_create_with(bridge, &options, &other));
    options.kind = HIPCL_FFT_REAL_TO_COMPLEX;
    options.output_stride = 2;
    options.output_distance = HALF;
    FAILS(HIPCL_ERROR_ARGUMENT, "write to the same place", hipcl_fft_create_with(bridge, &options, &other));
    options.output_distance = GAP;
    options.output_scale = 0.5f;
    OK(hipcl_fft_create_with(bridge, &options, &forward));

    OK(hipcl_fft_options_init(&options));
    options.length = LEN;
    options.batch = BATCH;
    options.kind = HIPCL_FFT_COMPLEX_TO_REAL;
    options.input_stride = 2;
    options.input_distance = GAP;
    options.output_scale = 2.0f / LEN;
    OK(hipcl_fft_create_with(bridge, &options, &inverse));
    options.struct_size = 8;
    FAILS(HIPCL_ERROR_ARGUMENT, "sizeof(struct hipcl_fft_options)", hipcl_fft_create_with(bridge, &options, &other));
    CHECK(other == NULL);

    for (int on_stream = 0; on_stream < 2; on_stream++) {
        for (int i = 0; i < GAP * BATCH; i++) found[i].re = found[i].im = 77.0f;
        OK(hipcl_buffer_upload(output, found, sizeof found));
        OK(on_stream ? hipcl_fft_enqueue_on_stream(forward, stream, HIPCL_FFT_FORWARD, input, output)
                     : hipcl_fft_enqueue_on_queue(forward, queue, HIPCL_FFT_FORWARD, input, output));
        OK(hipcl_buffer_download(output, found, sizeof found));
        for (int row = 0; row < BATCH; row++) {
            for (int k = 0; k < HALF; k++) {
                double re = 0, im = 0;
                for (int n = 0; n < ROW; n++) {
                    double angle = -tau * k * n / LEN, value = 0.5 * (double)window[n] * (double)x[row * ROW + n];
                    re += value * cos(angle);
                    im += value * sin(angle);
                }
                CHECK(near(found[row * GAP + 2 * k], re, im));
                CHECK(found[row * GAP + 2 * k + 1].re == 77.0f || k == HALF - 1);
            }
        }
        OK(on_stream ? hipcl_fft_enqueue_on_stream(inverse, stream, HIPCL_FFT_INVERSE, output, real)
                     : hipcl_fft_enqueue_on_queue(inverse, queue, HIPCL_FFT_INVERSE, output, real));
        OK(hipcl_buffer_download(real, back, sizeof back));
        for (int row = 0; row < BATCH; row++) {
            for (int n = 0; n < LEN; n++) {
                struct hipcl_complex is = {back[row * LEN + n], 0.0f};
                CHECK(near(is, n < ROW ? (double)window[n] * (double)x[row * ROW + n] : 0.0, 0.0));
            }
        }
        FAILS(HIPCL_ERROR_ARGUMENT, "forward transform",
              on_stream ? hipcl_fft_enqueue_on_stream(forward, stream, HIPCL_FFT_INVERSE, input, output)
                        : hipcl_fft_enqueue_on_queue(forward, queue, HIPCL_FFT_INVERSE, input, output));
        FAILS(HIPCL_ERROR_ARGUMENT, "`output` has",
              on_stream ? hipcl_fft_enqueue_on_stream(forward, stream, HIPCL_FFT_FORWARD, input, input)
                        : hipcl_fft_enqueue_on_queue(forward, queue, HIPCL_FFT_FORWARD, input, input));
        FAILS(HIPCL_ERROR_ARGUMENT, "different memory",
              on_stream ? hipcl_fft_enqueue_on_stream(forward, stream, HIPCL_FFT_FORWARD, output, output)
                        : hipcl_fft_enqueue_on_queue(forward, queue, HIPCL_FFT_FORWARD, output, output));
    }
    OK(hipcl_fft_destroy(forward));
    OK(hipcl_fft_destroy(inverse));
    OK(hipcl_buffer_destroy(input));
    OK(hipcl_buffer_destroy(output));
    OK(hipcl_buffer_destroy(real));
}

static const char SOURCE[] =
    "kernel void sum(global const float *x, global float *y, local float *part, float by) {\n"
    "    size_t i = get_local_id(0);\n"
    "    part[i] = x[get_global_id(0)] * by;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    if (i == 0) {\n"
    "        float sum = 0;\n"
    "        for (size_t k = 0; k < get_local_size(0); k++) sum += part[k];\n"
    "        y[get_group_id(0)] = sum;\n"
    "    }\n"
    "}\n";

/* Two launches under two open accesses on one stream, and one that takes its buffers itself on a queue. */
static void kernels(void) {
    enum { GROUPS = 4, SIZE = 8, LEN = GROUPS * SIZE };
    float x[LEN], y[GROUPS];
    for (int i = 0; i < LEN; i++) x[i] = (float)i;
    hipcl_buffer from, to;
    OK(hipcl_buffer_create(bridge, sizeof x, &from));
    OK(hipcl_buffer_create(bridge, sizeof y, &to));
    OK(hipcl_buffer_upload(from, x, sizeof x));

    hipcl_program program;
    hipcl_kernel sum;
    FAILS(HIPCL_ERROR_BUILD, "clBuildProgram", hipcl_program_build(bridge, "kernel void f(", NULL, &program));
    CHECK(strchr(hipcl_last_error(), '\n') != NULL && hipcl_last_error_code() < 0);
    OK(hipcl_program_build(bridge, SOURCE, "-cl-std=CL1.2", &program));
    FAILS(HIPCL_ERROR_ARGUMENT, "its kernels: sum", hipcl_kernel_create(program, "none", &sum));
    OK(hipcl_kernel_create(program, "sum", &sum));
    struct hipcl_program_cache_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
    OK(hipcl_bridge_program_cache(bridge, &before));
    hipcl_program again;
    OK(hipcl_program_build(bridge, SOURCE, "-cl-std=CL1.2", &again));
    OK(hipcl_bridge_program_cache(bridge, &after));
    CHECK(after.memory_hits == before.memory_hits + 1 && after.compiled == before.compiled);
    OK(hipcl_program_destroy(again));

    float by = 2.0f;
    struct hipcl_arg arguments[] = {
        {sizeof *arguments, HIPCL_ARG_READ, .buffer = from},
        {sizeof *arguments, HIPCL_ARG_WRITE, .buffer = to},
        {sizeof *arguments, HIPCL_ARG_LOCAL, .bytes = SIZE * sizeof(float)},
        {sizeof *arguments, HIPCL_ARG_VALUE, .value = &by, .bytes = sizeof by},
    };
    const struct hipcl_range range = {.struct_size = sizeof range, .dimensions = 1, .global = {LEN}, .local = {SIZE}};
    OK(hipcl_kernel_launch_on_queue(sum, queue, &range, arguments, 4));
    OK(hipcl_buffer_download(to, y, sizeof y));
    for (int i = 0; i < GROUPS; i++) CHECK(y[i] == 2.0f * (float)(SIZE * SIZE * i + SIZE * (SIZE - 1) / 2));

    FAILS(HIPCL_ERROR_ARGUMENT, "got 3 arguments, it takes 4",
          hipcl_kernel_launch_on_queue(sum, queue, &range, arguments, 3));
    const struct hipcl_range odd = {.struct_size = sizeof odd, .dimensions = 1, .global = {LEN}, .local = {5}};
    FAILS(HIPCL_ERROR_ARGUMENT, "do not divide", hipcl_kernel_launch_on_stream(sum, stream, &odd, arguments, 4));
    arguments[0].buffer = to;
    FAILS(HIPCL_ERROR_BUSY, "argument 1: `buffer` is in use",
          hipcl_kernel_launch_on_queue(sum, queue, &range, arguments, 4));

    hipcl_access reading, writing;
    OK(hipcl_access_begin_stream(from, stream, HIPCL_ACCESS_READ, &reading));
    OK(hipcl_access_begin_stream(to, stream, HIPCL_ACCESS_WRITE, &writing));
    arguments[0].kind = arguments[1].kind = HIPCL_ARG_ACCESS;
    arguments[0].access = reading, arguments[1].access = writing;
    by = 1.0f;
    OK(hipcl_kernel_launch_on_stream(sum, stream, &range, arguments, 4));
    by = 3.0f;
    OK(hipcl_kernel_launch_on_stream(sum, stream, &range, arguments, 4));
    by = 0.0f; /* values are copied */
    FAILS(HIPCL_ERROR_ARGUMENT, "for another queue or for a stream",
          hipcl_kernel_launch_on_queue(sum, queue, &range, arguments, 4));
    /* An access for reading is not written. */
    arguments[1].access = reading;
    FAILS(HIPCL_ERROR_ARGUMENT, "sum", hipcl_kernel_launch_on_stream(sum, stream, &range, arguments, 4));
    OK(hipcl_access_end(reading));
    OK(hipcl_access_end(writing));
    OK(hipcl_program_destroy(program));
    OK(hipcl_buffer_download(to, y, sizeof y));
    for (int i = 0; i < GROUPS; i++) CHECK(y[i] == 3.0f * (float)(SIZE * SIZE * i + SIZE * (SIZE - 1) / 2));
    OK(hipcl_kernel_destroy(sum));
    OK(hipcl_buffer_destroy(from));
    OK(hipcl_buffer_destroy(to));
}

static void options_and_reports(void) {
    struct hipcl_bridge_options options = {.struct_size = sizeof options};
    hipcl_bridge other;
    hipcl_text report;
    const char *text;
    OK(hipcl_bridge_options_init(&options));
    CHECK(options.struct_size == sizeof options && options.opencl_device == -1);
    options.platform = "vapour";
    FAILS(HIPCL_ERROR_ARGUMENT, "unknown platform `vapour` in options.platform", hipcl_bridge_open(&options, &other));
    CHECK(other == NULL);
    options.platform = NULL;
    options.hip_device = -3;
    FAILS(HIPCL_ERROR_ARGUMENT, "`options.hip_device` is -3", hipcl_bridge_open(&options, &other));
    options.struct_size = 8;
    FAILS(HIPCL_ERROR_ARGUMENT, "set it to sizeof(struct hipcl_bridge_options)", hipcl_bridge_options_init(&options));
    FAILS(HIPCL_ERROR_ARGUMENT, "set it to sizeof(struct hipcl_bridge_options)", hipcl_bridge_open(&options, &other));
    options.struct_size = sizeof options;

    /* A copying route is taken where it is named, and counted. */
    OK(hipcl_bridge_options_init(&options));
    options.route = HIPCL_ROUTE_STAGING;
    OK(hipcl_bridge_open(&options, &other));
    hipcl_buffer buffer;
    struct hipcl_buffer_info info = {.struct_size = sizeof info};
    OK(hipcl_buffer_create(other, 64, &buffer));
    OK(hipcl_buffer_get_info(buffer, &info));
    CHECK(info.route == HIPCL_ROUTE_STAGING && info.is_copy == 1);
    char data[64] = {1};
    OK(hipcl_buffer_upload(buffer, data, 64));
    hipcl_stream theirs;
    hipcl_access access;
    OK(hipcl_stream_create(other, &theirs));
    OK(hipcl_access_begin_stream(buffer, theirs, HIPCL_ACCESS_READ, &access));
    OK(hipcl_access_end(access));
    struct hipcl_counters counters = {.struct_size = sizeof counters};
    OK(hipcl_bridge_counters(other, &counters));
    CHECK(counters.data_set >= 64);
    OK(hipcl_stream_destroy(theirs));
    OK(hipcl_buffer_destroy(buffer));
    OK(hipcl_bridge_destroy(other));

    OK(hipcl_bridge_report(bridge, HIPCL_FORMAT_JSON, &report));
    OK(hipcl_text_get(report, &text, NULL));
    CHECK(strstr(text, "\"opencl_library\": \"") != NULL && strstr(text, "\"works\": true") != NULL);
    OK(hipcl_text_destroy(report));
    FAILS(HIPCL_ERROR_STALE_HANDLE, "hipcl_text that was destroyed", hipcl_text_get(report, &text, NULL));
    CHECK(text == NULL);

    CHECK(strcmp(hipcl_status_name(HIPCL_ERROR_BUSY), "HIPCL_ERROR_BUSY") == 0);
    CHECK(strcmp(hipcl_status_name(HIPCL_ERROR_PANIC), "HIPCL_ERROR_PANIC") == 0);
    CHECK(strcmp(hipcl_status_name(HIPCL_ERROR_LIMIT + 1), "unknown status") == 0);
    CHECK(strchr(hipcl_version(), '.') != NULL);
}

int main(void) {
    OK(hipcl_bridge_open(NULL, &bridge));
    OK(hipcl_queue_create(bridge, &queue));
    OK(hipcl_stream_create(bridge, &stream));
    OK(hipcl_blas_create(bridge, stream, &blas));
    products();
    inverses();
    transforms();
    transforms_with_options();
    kernels();
    options_and_reports();
    struct hipcl_counters counters = {.struct_size = sizeof counters};
    OK(hipcl_bridge_counters(bridge, &counters));
    CHECK(counters.data_set == 0);
    OK(hipcl_blas_destroy(blas));
    OK(hipcl_stream_destroy(stream));
    OK(hipcl_queue_destroy(queue));
    OK(hipcl_bridge_destroy(bridge));
    return 0;
}
