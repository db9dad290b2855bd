/* An OpenCL library that knows cl_mem only, clFFT, works in place on memory that rocBLAS then reads: spectra of all channels,
 * then their covariance, R = X^H X, without a copy between the two. clFFT is used as it is packaged (Debian: libclfft2).
 *
 *   cc -std=c11 clfft.c -I PREFIX/include -L PREFIX/lib -lhipcl -Wl,-rpath,PREFIX/lib -ldl -lm -o clfft
 *
 * `cargo xtask capi PREFIX` makes PREFIX. HIPCL_CLFFT names another library than libclFFT.so.2. */
#include <hipcl.h>

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 256, CHANNELS = 8, COUNT = SAMPLES * CHANNELS };

static void ok(hipcl_status status) {
    if (status != HIPCL_SUCCESS) {
        fprintf(stderr, "%s: %s\n", hipcl_status_name(status), hipcl_last_error());
        exit(EXIT_FAILURE);
    }
}

/* What <clFFT.h> declares of it. A program that is built where clFFT is installed includes that header and links with the
 * library instead. */
struct fft_setup {
    uint32_t major, minor, patch;
    uint64_t debug_flags;
};
enum { FFT_1D = 1, FFT_SINGLE = 1, FFT_COMPLEX_INTERLEAVED = 1, FFT_IN_PLACE = 1, FFT_FORWARD = -1 };
static struct {
    int (*version)(uint32_t *major, uint32_t *minor, uint32_t *patch);
    int (*setup)(const struct fft_setup *setup);
    int (*create)(size_t *plan, struct _cl_context *context, int dimensions, const size_t *lengths);
    int (*precision)(size_t plan, int precision);
    int (*layout)(size_t plan, int input, int output);
    int (*place)(size_t plan, int place);
    int (*batch)(size_t plan, size_t batch);
    int (*bake)(size_t plan, uint32_t queues, struct _cl_command_queue **queue, void *callback, void *data);
    int (*enqueue)(size_t plan, int direction, uint32_t queues, struct _cl_command_queue **queue, uint32_t waits,
                   const void *wait, void *event, struct _cl_mem **input, struct _cl_mem **output, struct _cl_mem *scratch);
    int (*destroy)(size_t *plan);
    int (*teardown)(void);
} fft;

static void fft_ok(const char *call, int code) {
    if (code != 0) {
        fprintf(stderr, "%s failed: %d\n", call, code);
        exit(EXIT_FAILURE);
    }
}

static void fft_find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "the library has no %s\n", name);
        exit(EXIT_FAILURE);
    }
    memcpy(function, &found, sizeof found);
}

static int fft_load(void) {
    const char *name = getenv("HIPCL_CLFFT");
    void *library = dlopen(name != NULL && *name != '\0' ? name : "libclFFT.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("skipped: %s; install clFFT (Debian: libclfft2), or set HIPCL_CLFFT to the library\n", dlerror());
        return 0;
    }
    fft_find(library, "clfftGetVersion", &fft.version);
    fft_find(library, "clfftSetup", &fft.setup);
    fft_find(library, "clfftCreateDefaultPlan", &fft.create);
    fft_find(library, "clfftSetPlanPrecision", &fft.precision);
    fft_find(library, "clfftSetLayout", &fft.layout);
    fft_find(library, "clfftSetResultLocation", &fft.place);
    fft_find(library, "clfftSetPlanBatchSize", &fft.batch);
    fft_find(library, "clfftBakePlan", &fft.bake);
    fft_find(library, "clfftEnqueueTransform", &fft.enqueue);
    fft_find(library, "clfftDestroyPlan", &fft.destroy);
    fft_find(library, "clfftTeardown", &fft.teardown);
    struct fft_setup setup = {0};
    fft_ok("clfftGetVersion", fft.version(&setup.major, &setup.minor, &setup.patch));
    fft_ok("clfftSetup", fft.setup(&setup));
    return 1;
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
    size_t plan;
    const size_t length = SAMPLES;
    fft_ok("clfftCreateDefaultPlan", fft.create(&plan, native.context, FFT_1D, &length));
    fft_ok("clfftSetPlanPrecision", fft.precision(plan, FFT_SINGLE));
    fft_ok("clfftSetLayout", fft.layout(plan, FFT_COMPLEX_INTERLEAVED, FFT_COMPLEX_INTERLEAVED));
    fft_ok("clfftSetResultLocation", fft.place(plan, FFT_IN_PLACE));
    fft_ok("clfftSetPlanBatchSize", fft.batch(plan, CHANNELS));
    fft_ok("clfftBakePlan", fft.bake(plan, 1, &raw, NULL, NULL));
    ok(hipcl_access_begin_queue(x, queue, HIPCL_ACCESS_WRITE, &access));
    ok(hipcl_access_cl_mem(access, &object));
    fft_ok("clfftEnqueueTransform", fft.enqueue(plan, FFT_FORWARD, 1, &raw, 0, NULL, NULL, &object, NULL, NULL));
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

    fft_ok("clfftDestroyPlan", fft.destroy(&plan));
    fft_ok("clfftTeardown", fft.teardown());
    ok(hipcl_buffer_destroy(x));
    ok(hipcl_buffer_destroy(r));
    ok(hipcl_blas_destroy(blas));
    ok(hipcl_queue_destroy(queue));
    ok(hipcl_stream_destroy(stream));
    ok(hipcl_bridge_destroy(bridge));
    return worst < 1e-5 && counters.data_set == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
