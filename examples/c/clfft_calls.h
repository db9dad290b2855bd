/* What the examples use of clFFT, looked up at run time, so that they compile where it is not installed. A program that is
 * built where it is includes <clFFT.h> and links with the library instead. */
#ifndef HIPCL_EXAMPLES_CLFFT_CALLS_H
#define HIPCL_EXAMPLES_CLFFT_CALLS_H

#include <hipcl.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* 0 if clFFT is not installed. HIPCL_CLFFT names another library than libclFFT.so.2. */
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
    struct fft_setup setup = {0, 0, 0, 0};
    fft_ok("clfftGetVersion", fft.version(&setup.major, &setup.minor, &setup.patch));
    fft_ok("clfftSetup", fft.setup(&setup));
    return 1;
}

/* A plan for `batch` complex rows of `length` numbers, in place. */
static size_t fft_plan(struct _cl_context *context, struct _cl_command_queue *queue, size_t length, size_t batch) {
    size_t plan;
    fft_ok("clfftCreateDefaultPlan", fft.create(&plan, context, FFT_1D, &length));
    fft_ok("clfftSetPlanPrecision", fft.precision(plan, FFT_SINGLE));
    fft_ok("clfftSetLayout", fft.layout(plan, FFT_COMPLEX_INTERLEAVED, FFT_COMPLEX_INTERLEAVED));
    fft_ok("clfftSetResultLocation", fft.place(plan, FFT_IN_PLACE));
    fft_ok("clfftSetPlanBatchSize", fft.batch(plan, batch));
    fft_ok("clfftBakePlan", fft.bake(plan, 1, &queue, NULL, NULL));
    return plan;
}

static void fft_forward(size_t plan, struct _cl_command_queue *queue, struct _cl_mem *rows) {
    fft_ok("clfftEnqueueTransform", fft.enqueue(plan, FFT_FORWARD, 1, &queue, 0, NULL, NULL, &rows, NULL, NULL));
}

static void fft_end(size_t plan) {
    fft_ok("clfftDestroyPlan", fft.destroy(&plan));
    fft_ok("clfftTeardown", fft.teardown());
}

#endif
