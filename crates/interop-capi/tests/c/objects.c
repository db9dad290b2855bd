/* Handles across threads and in every order: what is destroyed is an error, what is in use is refused. */
#include "check.h"

#include <pthread.h>

enum { BYTES = 4096 };

static hipcl_bridge bridge;

/* Another thread destroys what this one created; its error is its own. */
static void *destroys(void *buffer) {
    CHECK(hipcl_last_error()[0] == '\0');
    OK(hipcl_buffer_destroy((hipcl_buffer)buffer));
    FAILS(HIPCL_ERROR_STALE_HANDLE, "hipcl_buffer_destroy: `buffer` is a hipcl_buffer that was destroyed",
          hipcl_buffer_destroy((hipcl_buffer)buffer));
    return NULL;
}

static void *ends(void *access) {
    OK(hipcl_access_end((hipcl_access)access));
    return NULL;
}

static void on_another_thread(void *(*work)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void freed_by_another_thread(void) {
    hipcl_buffer buffer;
    OK(hipcl_buffer_create(bridge, BYTES, &buffer));
    FAILS(HIPCL_ERROR_ARGUMENT, "hipcl_buffer_upload: `bytes` is 1", hipcl_buffer_upload(buffer, "", 1));
    on_another_thread(destroys, buffer);
    /* The other thread's failure has not replaced this thread's text. */
    CHECK(strstr(hipcl_last_error(), "hipcl_buffer_upload") != NULL);
    char data[BYTES];
    FAILS(HIPCL_ERROR_STALE_HANDLE, "destroyed", hipcl_buffer_download(buffer, data, BYTES));
    /* A new object never has an old handle. */
    hipcl_buffer next;
    OK(hipcl_buffer_create(bridge, BYTES, &next));
    CHECK(next != buffer);
    FAILS(HIPCL_ERROR_STALE_HANDLE, "destroyed", hipcl_buffer_destroy(buffer));
    OK(hipcl_buffer_destroy(next));
}

static void an_open_access_keeps_others_away(void) {
    hipcl_buffer buffer;
    hipcl_queue queue;
    hipcl_stream stream;
    OK(hipcl_buffer_create(bridge, BYTES, &buffer));
    OK(hipcl_queue_create(bridge, &queue));
    OK(hipcl_stream_create(bridge, &stream));
    static char data[BYTES];
    OK(hipcl_buffer_upload(buffer, data, BYTES));

    hipcl_access writing, reading, second;
    OK(hipcl_access_begin_stream(buffer, stream, HIPCL_ACCESS_WRITE, &writing));
    FAILS(HIPCL_ERROR_BUSY, "open access", hipcl_access_begin_queue(buffer, queue, HIPCL_ACCESS_READ, &reading));
    CHECK(reading == NULL);
    FAILS(HIPCL_ERROR_BUSY, "open access", hipcl_buffer_upload(buffer, data, BYTES));
    FAILS(HIPCL_ERROR_BUSY, "open access", hipcl_buffer_download(buffer, data, BYTES));
    FAILS(HIPCL_ERROR_BUSY, "open access", hipcl_buffer_destroy(buffer));
    /* What is known about the buffer is known to its writer too. */
    struct hipcl_buffer_info info = {.struct_size = sizeof info}, before = {.struct_size = sizeof before};
    void *own;
    OK(hipcl_access_pointer(writing, &own));
    OK(hipcl_buffer_get_info(buffer, &info));
    CHECK(info.bytes == BYTES && info.hip_address == (uintptr_t)own && info.route != HIPCL_ROUTE_AUTO);
    on_another_thread(ends, writing);
    OK(hipcl_buffer_get_info(buffer, &before));
    CHECK(memcmp(&info, &before, sizeof info) == 0);
    FAILS(HIPCL_ERROR_STALE_HANDLE, "hipcl_access that was destroyed", hipcl_access_end(writing));

    /* Readers share the buffer, on both sides; a writer waits for none of them and is refused. */
    OK(hipcl_access_begin_queue(buffer, queue, HIPCL_ACCESS_READ, &reading));
    OK(hipcl_access_begin_stream(buffer, stream, HIPCL_ACCESS_READ, &second));
    OK(hipcl_buffer_download(buffer, data, BYTES));
    FAILS(HIPCL_ERROR_BUSY, "open access", hipcl_access_begin_queue(buffer, queue, HIPCL_ACCESS_WRITE, &writing));
    FAILS(HIPCL_ERROR_BUSY, "open access", hipcl_buffer_destroy(buffer));

    /* Queue, stream and bridge go first; the accesses live on what they keep. */
    OK(hipcl_queue_destroy(queue));
    OK(hipcl_stream_destroy(stream));
    void *pointer;
    OK(hipcl_access_pointer(second, &pointer));
    CHECK(pointer != NULL);
    OK(hipcl_access_end(reading));
    OK(hipcl_access_end(second));
    FAILS(HIPCL_ERROR_STALE_HANDLE, "destroyed", hipcl_access_pointer(second, &pointer));
    CHECK(pointer == NULL);
    OK(hipcl_buffer_destroy(buffer));
}

static void the_bridge_goes_first(void) {
    hipcl_bridge own;
    hipcl_buffer buffer, none;
    hipcl_queue queue;
    hipcl_access access;
    OK(hipcl_bridge_open(NULL, &own));
    OK(hipcl_buffer_create(own, BYTES, &buffer));
    OK(hipcl_queue_create(own, &queue));
    OK(hipcl_access_begin_queue(buffer, queue, HIPCL_ACCESS_WRITE, &access));
    OK(hipcl_bridge_destroy(own));
    FAILS(HIPCL_ERROR_STALE_HANDLE, "hipcl_bridge that was destroyed", hipcl_buffer_create(own, BYTES, &none));
    CHECK(none == NULL);
    OK(hipcl_queue_finish(queue));
    OK(hipcl_access_end(access));
    OK(hipcl_queue_destroy(queue));
    OK(hipcl_buffer_destroy(buffer));
}

/* Readers and writers on four threads: whatever is refused is BUSY, and nothing is torn. */
static void *contends(void *buffer) {
    char patterns[2][BYTES];
    memset(patterns[0], 0, BYTES);
    memset(patterns[1], 1, BYTES);
    for (int round = 0; round < 200; round++) {
        char data[BYTES];
        hipcl_status status = round % 2 ? hipcl_buffer_upload((hipcl_buffer)buffer, patterns[round / 2 % 2], BYTES)
                                        : hipcl_buffer_download((hipcl_buffer)buffer, data, BYTES);
        CHECK(status == HIPCL_SUCCESS || status == HIPCL_ERROR_BUSY);
        if (status == HIPCL_SUCCESS && round % 2 == 0) {
            CHECK(data[0] == data[BYTES - 1] && data[0] == data[BYTES / 2]);
        }
    }
    return NULL;
}

static void conflicting_calls_are_refused_and_tear_nothing(void) {
    hipcl_buffer buffer;
    static char data[BYTES];
    OK(hipcl_buffer_create(bridge, BYTES, &buffer));
    OK(hipcl_buffer_upload(buffer, data, BYTES));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, contends, buffer) == 0);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    OK(hipcl_buffer_destroy(buffer));
}

/* Four threads destroy one buffer: one of them does, for the others it is gone or going. */
static void *races(void *buffer) {
    hipcl_status status = hipcl_buffer_destroy((hipcl_buffer)buffer);
    CHECK(status == HIPCL_SUCCESS || status == HIPCL_ERROR_STALE_HANDLE);
    return status == HIPCL_SUCCESS ? buffer : NULL;
}

static void a_buffer_is_destroyed_once(void) {
    for (int round = 0; round < 50; round++) {
        hipcl_buffer buffer;
        OK(hipcl_buffer_create(bridge, BYTES, &buffer));
        pthread_t threads[4];
        int destroyed = 0;
        for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, races, buffer) == 0);
        for (int i = 0; i < 4; i++) {
            void *own;
            CHECK(pthread_join(threads[i], &own) == 0);
            destroyed += own != NULL;
        }
        CHECK(destroyed == 1);
    }
}

int main(void) {
    CHECK(hipcl_last_error()[0] == '\0' && hipcl_last_error_code() == 0);
    OK(hipcl_bridge_open(NULL, &bridge));
    freed_by_another_thread();
    an_open_access_keeps_others_away();
    the_bridge_goes_first();
    conflicting_calls_are_refused_and_tear_nothing();
    a_buffer_is_destroyed_once();
    hipcl_text errors;
    const char *text;
    OK(hipcl_bridge_take_deferred_errors(bridge, &errors));
    OK(hipcl_text_get(errors, &text, NULL));
    CHECK(text[0] == '\0');
    OK(hipcl_text_destroy(errors));
    OK(hipcl_bridge_destroy(bridge));
    return 0;
}
