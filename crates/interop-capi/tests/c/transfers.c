/* Parts of buffers: from and to the host, waited for and enqueued, filled and copied, on every route that works here. Each
 * is compared with the same done to host memory. */
#include "check.h"

enum { BYTES = 4096, ROUTES = HIPCL_ROUTE_STAGING };

static hipcl_bridge bridge;
static hipcl_queue queue, second;
static hipcl_stream stream;

static void fill(unsigned char *bytes, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)(i * 7 + seed);
}

static void holds(hipcl_buffer buffer, const unsigned char *model) {
    unsigned char found[BYTES];
    OK(hipcl_buffer_download(buffer, found, BYTES));
    for (int i = 0; i < BYTES; i++) {
        if (found[i] != model[i]) fprintf(stderr, "byte %d: %d, not %d\n", i, found[i], model[i]);
        CHECK(found[i] == model[i]);
    }
}

/* A product on a HIP stream writes behind, so that the memory is HIP's when the next transfer comes. */
static void touched_by_hip(hipcl_kernel increment, hipcl_buffer buffer, unsigned char *model) {
    const struct hipcl_arg argument = {.struct_size = sizeof argument, .kind = HIPCL_ARG_WRITE, .buffer = buffer};
    const struct hipcl_range range = {.struct_size = sizeof range, .dimensions = 1, .global = {BYTES}};
    OK(hipcl_kernel_launch_on_stream(increment, stream, &range, &argument, 1));
    for (int i = 0; i < BYTES; i++) model[i]++;
}

static void waited_for(hipcl_kernel increment, hipcl_buffer buffer, unsigned char *model) {
    /* The ends, the middle, and places that no unit divides. */
    static const struct {
        size_t offset, bytes;
    } parts[] = {{0, 1}, {BYTES - 1, 1}, {128, 256}, {1, 4095}, {13, 1000}, {2048, 2048}, {1111, 3}, {0, BYTES}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t offset = parts[i].offset, bytes = parts[i].bytes;
        unsigned char data[BYTES];
        fill(data, bytes, (unsigned)i);
        OK(hipcl_buffer_upload_at(buffer, offset, data, bytes));
        memcpy(model + offset, data, bytes);
        touched_by_hip(increment, buffer, model);
        memset(data, 0, sizeof data);
        OK(hipcl_buffer_download_at(buffer, offset, data, bytes));
        CHECK(memcmp(data, model + offset, bytes) == 0);
        holds(buffer, model);
    }
}

/* Enqueued on two queues in turn, with HIP's work between: each comes after what was asked for before. */
static void enqueued(hipcl_kernel increment, hipcl_buffer buffer, unsigned char *model, int is_hips) {
    unsigned char data[1000], found[1000];
    hipcl_event written, read;
    int32_t is_complete;
    fill(data, sizeof data, 91);
    if (is_hips) {
        FAILS(HIPCL_ERROR_NOT_SUPPORTED, "use `upload_at`",
              hipcl_buffer_upload_on_queue(buffer, queue, 13, data, sizeof data, &written));
        FAILS(HIPCL_ERROR_NOT_SUPPORTED, "use `download_at`",
              hipcl_buffer_download_on_queue(buffer, queue, 13, data, sizeof data, &read));
        CHECK(written == NULL && read == NULL);
        return;
    }
    OK(hipcl_buffer_upload_on_queue(buffer, queue, 13, data, sizeof data, &written));
    memcpy(model + 13, data, sizeof data);
    touched_by_hip(increment, buffer, model);
    OK(hipcl_buffer_download_on_queue(buffer, second, 500, found, sizeof found, &read));
    OK(hipcl_event_wait(read));
    OK(hipcl_event_is_complete(read, &is_complete));
    CHECK(is_complete == 1);
    OK(hipcl_event_is_complete(written, &is_complete));
    CHECK(is_complete == 1);
    CHECK(memcmp(found, model + 500, sizeof found) == 0);
    struct _cl_event *native;
    OK(hipcl_event_native(read, &native));
    CHECK(native != NULL);
    OK(hipcl_event_destroy(read));
    OK(hipcl_event_destroy(written));
    /* Without an event: the queue's end is the transfer's. */
    memset(found, 0, sizeof found);
    OK(hipcl_buffer_download_on_queue(buffer, queue, 0, found, 64, NULL));
    OK(hipcl_queue_finish(queue));
    CHECK(memcmp(found, model, 64) == 0);
    holds(buffer, model);
}

static void filled(hipcl_kernel increment, hipcl_buffer buffer, unsigned char *model) {
    const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const size_t lengths[] = {1, 2, 4, 8, 16};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        /* Also where the pattern is larger than what its place is a multiple of. */
        for (size_t offset = 0; offset <= 48; offset = offset * 2 + 3) {
            size_t length = lengths[i], bytes = 63 * length;
            hipcl_event event;
            OK(hipcl_buffer_fill_on_queue(buffer, queue, offset, bytes, pattern, length, &event));
            for (size_t at = 0; at < bytes; at++) model[offset + at] = pattern[at % length];
            OK(hipcl_event_destroy(event));
            touched_by_hip(increment, buffer, model);
        }
    }
    holds(buffer, model);
    FAILS(HIPCL_ERROR_ARGUMENT, "`pattern_bytes` is 3",
          hipcl_buffer_fill_on_queue(buffer, queue, 0, 6, pattern, 3, NULL));
    FAILS(HIPCL_ERROR_ARGUMENT, "whole number of times",
          hipcl_buffer_fill_on_queue(buffer, queue, 0, 10, pattern, 4, NULL));
}

static void copied(hipcl_kernel increment, hipcl_buffer from, const unsigned char *source, hipcl_buffer to,
                   unsigned char *model) {
    static const struct {
        size_t from, to, bytes;
    } parts[] = {{0, 0, BYTES}, {16, 64, 1024}, {3, 7, 100}, {4, 12, 400}, {BYTES - 2, 0, 2}, {0, BYTES - 1, 1}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct hipcl_counters before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
        hipcl_event event;
        touched_by_hip(increment, to, model);
        OK(hipcl_bridge_counters(bridge, &before));
        OK(hipcl_buffer_copy_on_queue(to, parts[i].to, from, parts[i].from, parts[i].bytes, queue, &event));
        OK(hipcl_bridge_counters(bridge, &after));
        CHECK(after.data_set - before.data_set >= parts[i].bytes);
        memcpy(model + parts[i].to, source + parts[i].from, parts[i].bytes);
        OK(hipcl_event_wait(event));
        OK(hipcl_event_destroy(event));
    }
    holds(to, model);
    holds(from, source);
}

static void refused(hipcl_buffer buffer) {
    unsigned char data[64] = {0};
    FAILS(HIPCL_ERROR_ARGUMENT, "`bytes` is 0", hipcl_buffer_upload_at(buffer, 0, data, 0));
    FAILS(HIPCL_ERROR_ARGUMENT, "not within the buffer", hipcl_buffer_upload_at(buffer, BYTES - 1, data, 2));
    FAILS(HIPCL_ERROR_ARGUMENT, "not within the buffer", hipcl_buffer_download_at(buffer, SIZE_MAX, data, 2));
    FAILS(HIPCL_ERROR_BUSY, "`target` is in use", hipcl_buffer_copy_on_queue(buffer, 0, buffer, 64, 64, queue, NULL));
    hipcl_access access;
    OK(hipcl_access_begin_queue(buffer, queue, HIPCL_ACCESS_READ, &access));
    OK(hipcl_buffer_download_at(buffer, 0, data, sizeof data));
    FAILS(HIPCL_ERROR_BUSY, "open access", hipcl_buffer_upload_at(buffer, 0, data, sizeof data));
    FAILS(HIPCL_ERROR_BUSY, "open access",
          hipcl_buffer_upload_on_queue(buffer, queue, 0, data, sizeof data, NULL));
    OK(hipcl_access_end(access));
}

int main(void) {
    hipcl_program program;
    hipcl_kernel increment;
    OK(hipcl_bridge_open(NULL, &bridge));
    OK(hipcl_queue_create(bridge, &queue));
    OK(hipcl_queue_create(bridge, &second));
    OK(hipcl_stream_create(bridge, &stream));
    OK(hipcl_program_build(bridge, "kernel void increment(global uchar *x) { x[get_global_id(0)]++; }", NULL, &program));
    OK(hipcl_kernel_create(program, "increment", &increment));

    unsigned char models[ROUTES][BYTES];
    hipcl_buffer buffers[ROUTES] = {NULL};
    int routes = 0;
    for (int i = 0; i < ROUTES; i++) {
        /* Routes that do not work here are refused when the memory is allocated. */
        if (hipcl_buffer_create_on(bridge, i + 1, BYTES, &buffers[i]) != HIPCL_SUCCESS) continue;
        struct hipcl_buffer_info info = {.struct_size = sizeof info};
        OK(hipcl_buffer_get_info(buffers[i], &info));
        fill(models[i], BYTES, (unsigned)i);
        OK(hipcl_buffer_upload(buffers[i], models[i], BYTES));
        int is_hips = info.route == HIPCL_ROUTE_HIP_POINTER || info.route == HIPCL_ROUTE_MANAGED;
        waited_for(increment, buffers[i], models[i]);
        enqueued(increment, buffers[i], models[i], is_hips);
        filled(increment, buffers[i], models[i]);
        refused(buffers[i]);
        routes++;
    }
    CHECK(routes > 0);
    for (int from = 0; from < ROUTES; from++) {
        for (int to = 0; to < ROUTES; to++) {
            if (from == to || buffers[from] == NULL || buffers[to] == NULL) continue;
            copied(increment, buffers[from], models[from], buffers[to], models[to]);
        }
    }
    for (int i = 0; i < ROUTES; i++) {
        if (buffers[i] != NULL) OK(hipcl_buffer_destroy(buffers[i]));
    }
    hipcl_event end;
    OK(hipcl_queue_record(queue, &end));
    OK(hipcl_event_wait(end));
    OK(hipcl_event_destroy(end));
    printf("%d routes\n", routes);
    return 0;
}
