/* The frame of the generated program that calls every function with wrong arguments (tests/capi/arguments.rs): right
 * objects, destroyed ones, and what is checked after each call. */
#include "check.h"

#include <limits.h>
#include <unistd.h>

enum { BYTES = 4096, ANY = -1 };

static hipcl_bridge right_bridge, destroyed_bridge;
static hipcl_queue right_queue, destroyed_queue;
static hipcl_stream right_stream, destroyed_stream;
static hipcl_buffer right_buffer, right_buffer_2, destroyed_buffer;
static hipcl_access right_access, destroyed_access;
static hipcl_program right_program, destroyed_program;
static hipcl_kernel right_kernel, destroyed_kernel;
static hipcl_blas right_blas, destroyed_blas;
static hipcl_fft right_fft, destroyed_fft;
static hipcl_text right_text, destroyed_text;
static hipcl_event right_event, destroyed_event;

static struct hipcl_bridge_options right_options;
static struct hipcl_fft_options right_fft_options;
static struct hipcl_native_handles natives = {.struct_size = sizeof natives};
static const struct hipcl_complex right_number = {1.0f, 0.0f};
static const struct hipcl_range right_range = {.struct_size = sizeof right_range, .dimensions = 1, .global = {4}};
static struct hipcl_arg right_arguments[1024];
static const char SOURCE[] = "kernel void f(global float *x) { x[get_global_id(0)] += 1.0f; }";

/* Aligned for every type, and long enough for whatever is read or written. */
static _Alignas(64) char data[2 * BYTES];
static _Alignas(64) char zeros[BYTES];
/* The first is a structure or a handle; the offsets are those of the sizes beside it. */
static _Alignas(64) uint64_t results[64];

static int is_strict;
static unsigned calls, faults, releases, releases_before;

static void released(void *user) {
    (void)user;
    releases++;
}

/* A structure that is filled begins with its size: here that of a later version of the header. */
enum { NO_STRUCTURE = 0, STRUCTURE = sizeof results / 2 };

static void begin(size_t struct_size) {
    memset(results, 0, sizeof results);
    results[0] = struct_size;
    releases_before = releases;
    calls++;
}

static void end(const char *function, const char *call, hipcl_status status, hipcl_status expected) {
    /* Without a bridge other arguments are wrong, too, so that another one may be refused first. */
    int is_expected = expected == ANY || (is_strict ? status == expected : status != HIPCL_SUCCESS);
    size_t length = strlen(function);
    int has_text = status == HIPCL_SUCCESS || (strncmp(hipcl_last_error(), function, length) == 0 &&
                                               strncmp(hipcl_last_error() + length, ": ", 2) == 0);
    /* Memory of a call that failed stays the caller's. */
    int is_kept = releases == releases_before;
    if (!is_expected || !has_text || !is_kept || status == HIPCL_ERROR_PANIC) {
        fprintf(stderr, "%s: %s, expected %s: %s\n", call, hipcl_status_name(status),
                expected == ANY ? "any" : hipcl_status_name(expected), hipcl_last_error());
        faults++;
    }
}

static void set_up_text(hipcl_text *text) {
    /* Prints its argument, "doctor", which will do as findings. */
    OK(hipcl_doctor("echo", HIPCL_FORMAT_TEXT, text));
}

static void set_up(int count, char **values) {
    is_strict = !(count > 1 && strcmp(values[1], "--without-bridge") == 0);
    right_options.struct_size = sizeof right_options;
    OK(hipcl_bridge_options_init(&right_options));
    right_fft_options.struct_size = sizeof right_fft_options;
    OK(hipcl_fft_options_init(&right_fft_options));
    right_fft_options.length = 8;
    set_up_text(&right_text);
    set_up_text(&destroyed_text);
    OK(hipcl_text_destroy(destroyed_text));
    if (!is_strict) {
        /* No call opens a bridge. */
        CHECK(setenv("HIPCL_PLATFORM", "none", 1) == 0);
        return;
    }

    OK(hipcl_bridge_open(NULL, &right_bridge));
    OK(hipcl_bridge_open(NULL, &destroyed_bridge));
    OK(hipcl_bridge_destroy(destroyed_bridge));
    OK(hipcl_bridge_native(right_bridge, &natives));

    OK(hipcl_queue_create(right_bridge, &right_queue));
    OK(hipcl_queue_create(right_bridge, &destroyed_queue));
    OK(hipcl_queue_destroy(destroyed_queue));
    OK(hipcl_stream_create(right_bridge, &right_stream));
    OK(hipcl_stream_create(right_bridge, &destroyed_stream));
    OK(hipcl_stream_destroy(destroyed_stream));

    OK(hipcl_queue_record(right_queue, &right_event));
    OK(hipcl_queue_record(right_queue, &destroyed_event));
    OK(hipcl_event_destroy(destroyed_event));

    hipcl_buffer held;
    OK(hipcl_buffer_create(right_bridge, BYTES, &held));
    OK(hipcl_buffer_create(right_bridge, BYTES, &right_buffer));
    OK(hipcl_buffer_create(right_bridge, BYTES, &right_buffer_2));
    OK(hipcl_buffer_create(right_bridge, BYTES, &destroyed_buffer));
    OK(hipcl_buffer_destroy(destroyed_buffer));
    OK(hipcl_buffer_upload(right_buffer, zeros, BYTES));
    OK(hipcl_access_begin_queue(held, right_queue, HIPCL_ACCESS_READ, &right_access));
    OK(hipcl_access_begin_queue(held, right_queue, HIPCL_ACCESS_READ, &destroyed_access));
    OK(hipcl_access_end(destroyed_access));

    OK(hipcl_program_build(right_bridge, SOURCE, NULL, &right_program));
    OK(hipcl_program_build(right_bridge, SOURCE, NULL, &destroyed_program));
    OK(hipcl_program_destroy(destroyed_program));
    OK(hipcl_kernel_create(right_program, "f", &right_kernel));
    OK(hipcl_kernel_create(right_program, "f", &destroyed_kernel));
    OK(hipcl_kernel_destroy(destroyed_kernel));
    OK(hipcl_blas_create(right_bridge, right_stream, &right_blas));
    OK(hipcl_blas_create(right_bridge, right_stream, &destroyed_blas));
    OK(hipcl_blas_destroy(destroyed_blas));
    OK(hipcl_fft_create(right_bridge, 8, 1, &right_fft));
    OK(hipcl_fft_create(right_bridge, 8, 1, &destroyed_fft));
    OK(hipcl_fft_destroy(destroyed_fft));
    right_arguments[0].struct_size = sizeof *right_arguments;
    right_arguments[0].kind = HIPCL_ARG_WRITE;
    right_arguments[0].buffer = right_buffer;
}

static int finish(void) {
    /* The objects are as usable as before. */
    if (is_strict) {
        OK(hipcl_buffer_download(right_buffer, data, BYTES));
        OK(hipcl_kernel_launch_on_stream(right_kernel, right_stream, &right_range, right_arguments, 1));
        OK(hipcl_buffer_destroy(right_buffer));
    }
    printf("%u calls\n", calls);
    return faults != 0;
}
