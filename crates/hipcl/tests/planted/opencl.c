/* An OpenCL library with one fault, in front of a real one that it is linked with: whoever asks it
 * for a function gets the real one's, except for what is below. PLANT says which fault. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SVM_FINE_GRAIN_BUFFER (1u << 10)
#define MEM_USE_HOST_PTR (1u << 3)
#define KERNEL_FUNCTION_NAME 0x1190
/* The probe's pattern; smaller requests are none of its. */
#define PATTERN_BYTES 262144

static int planted(const char *fault)
{
    const char *plant = getenv("PLANT");
    return plant && strcmp(plant, fault) == 0;
}

__attribute__((constructor)) static void load(void)
{
    if (planted("noise")) {
        puts("{\"found\":{}} from a library");
        fflush(stdout);
    }
    if (planted("abort-on-load")) {
        fputs("planted: no such firmware\n", stderr);
        abort();
    }
}

__attribute__((destructor)) static void unload(void)
{
    if (planted("crash-on-exit")) {
        /* others have handlers for it */
        signal(SIGBUS, SIG_DFL);
        raise(SIGBUS);
    }
}

void *clCreateBuffer(void *context, uint64_t flags, size_t bytes, void *host, int *code)
{
    void *(*real)(void *, uint64_t, size_t, void *, int *) =
        (void *(*)(void *, uint64_t, size_t, void *, int *))dlsym(RTLD_NEXT, "clCreateBuffer");
    if (bytes == PATTERN_BYTES && (flags & MEM_USE_HOST_PTR) && planted("crash-in-place")) {
        fputs("planted: no memory of the host\n", stderr);
        *(volatile int *)8 = 1;
    }
    return real(context, flags, bytes, host, code);
}

void *clSVMAlloc(void *context, uint64_t flags, size_t bytes, unsigned alignment)
{
    void *(*real)(void *, uint64_t, size_t, unsigned) =
        (void *(*)(void *, uint64_t, size_t, unsigned))dlsym(RTLD_NEXT, "clSVMAlloc");
    if (bytes == PATTERN_BYTES && !(flags & SVM_FINE_GRAIN_BUFFER)) {
        if (planted("crash")) {
            fputs("planted: about to crash\n", stderr);
            /* not raised: a handler that lets the instruction be done again would get past it */
            *(volatile int *)8 = 1;
        }
        if (planted("hang"))
            for (;;)
                pause();
        if (planted("leave"))
            _exit(0);
    }
    return real(context, flags, bytes, alignment);
}

int clSetEventCallback(void *event, int type, void *notify, void *data)
{
    int (*real)(void *, int, void *, void *) =
        (int (*)(void *, int, void *, void *))dlsym(RTLD_NEXT, "clSetEventCallback");
    /* a driver that takes a lock in there which it holds already */
    if (planted("deadlock-in-callback"))
        for (;;)
            pause();
    /* one that never calls back */
    if (planted("no-callback"))
        return 0;
    return real(event, type, notify, data);
}

int clEnqueueNDRangeKernel(void *queue, void *kernel, unsigned dimensions, const size_t *offset,
                           const size_t *global, const size_t *local, unsigned waits,
                           const void *wait_list, void *event)
{
    int (*real)(void *, void *, unsigned, const size_t *, const size_t *, const size_t *, unsigned,
                const void *, void *) =
        (int (*)(void *, void *, unsigned, const size_t *, const size_t *, const size_t *, unsigned,
                 const void *, void *))dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
    int (*info)(void *, unsigned, size_t, void *, size_t *) =
        (int (*)(void *, unsigned, size_t, void *, size_t *))dlsym(RTLD_NEXT, "clGetKernelInfo");
    char name[64] = "";
    size_t one = 1;
    if ((planted("short") || planted("short-copy")) && info(kernel, KERNEL_FUNCTION_NAME, sizeof name, name, NULL) == 0 &&
        strcmp(name, planted("short") ? "probe_fill" : "probe_copy") == 0) {
        global = &one;
        local = NULL;
    }
    return real(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
}
