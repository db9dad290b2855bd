/* A bridge on the caller's own OpenCL objects and stream, memory of every origin, and export by descriptor. OpenCL's
 * functions come from the table of the platform that the first bridge found, so that no header or loader is needed. */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;

#define CL_CONTEXT_PLATFORM 0x1084
#define CL_CONTEXT_REFERENCE_COUNT 0x1080
#define CL_QUEUE_REFERENCE_COUNT 0x1092
#define CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE 1
#define CL_MEM_REFERENCE_COUNT 0x1105
#define CL_MEM_READ_WRITE 1

static cl_context (*create_context)(const intptr_t *, uint32_t, const cl_device_id *, void *, void *, int32_t *);
static cl_command_queue (*create_queue)(cl_context, cl_device_id, uint64_t, int32_t *);
static cl_mem (*create_buffer)(cl_context, uint64_t, size_t, void *, int32_t *);
static void *(*svm_alloc)(cl_context, uint64_t, size_t, uint32_t);
static void (*svm_free)(cl_context, void *);
static int32_t (*context_info)(cl_context, uint32_t, size_t, void *, size_t *);
static int32_t (*queue_info)(cl_command_queue, uint32_t, size_t, void *, size_t *);
static int32_t (*mem_info)(cl_mem, uint32_t, size_t, void *, size_t *);
static int32_t (*fill_buffer)(cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, uint32_t, const void *, void *);
static int32_t (*release_context)(cl_context);
static int32_t (*release_queue)(cl_command_queue);
static int32_t (*release_mem)(cl_mem);

enum { LEN = 1024, BYTES = LEN * sizeof(float) };

static const char SOURCE[] = "kernel void twice(global float *x) { x[get_global_id(0)] *= 2.0f; }";

/* Where cl_khr_icd has a function in the table that every object of OpenCL points to. */
enum {
    CREATE_CONTEXT = 4,
    RELEASE_CONTEXT = 7,
    CONTEXT_INFO = 8,
    CREATE_QUEUE = 9,
    RELEASE_QUEUE = 11,
    QUEUE_INFO = 12,
    CREATE_BUFFER = 14,
    RELEASE_MEM = 18,
    MEM_INFO = 20,
    FILL_BUFFER = 102,
    SVM_ALLOC = 126,
    SVM_FREE = 127
};

/* By its bytes: C does not convert between pointers to objects and to functions. */
#define LOAD(function, place) \
    CHECK(table[place] != NULL && memcpy(&function, &table[place], sizeof function) != NULL)

static void load(cl_platform_id platform) {
    void **table;
    memcpy(&table, (const void *)platform, sizeof table);
    CHECK(table != NULL);
    LOAD(create_context, CREATE_CONTEXT);
    LOAD(create_queue, CREATE_QUEUE);
    LOAD(create_buffer, CREATE_BUFFER);
    LOAD(svm_alloc, SVM_ALLOC);
    LOAD(svm_free, SVM_FREE);
    LOAD(context_info, CONTEXT_INFO);
    LOAD(queue_info, QUEUE_INFO);
    LOAD(mem_info, MEM_INFO);
    LOAD(fill_buffer, FILL_BUFFER);
    LOAD(release_context, RELEASE_CONTEXT);
    LOAD(release_queue, RELEASE_QUEUE);
    LOAD(release_mem, RELEASE_MEM);
}

/* A kernel of OpenCL doubles the numbers on a queue, then on a HIP stream, and all arrive right. */
static void doubled_on_both_sides(hipcl_bridge bridge, hipcl_queue queue, hipcl_stream stream, hipcl_buffer buffer) {
    float numbers[LEN];
    for (int i = 0; i < LEN; i++) numbers[i] = (float)i;
    OK(hipcl_buffer_upload(buffer, numbers, BYTES));
    hipcl_program program;
    hipcl_kernel twice;
    OK(hipcl_program_build(bridge, SOURCE, NULL, &program));
    OK(hipcl_kernel_create(program, "twice", &twice));
    const struct hipcl_arg argument = {.struct_size = sizeof argument, .kind = HIPCL_ARG_WRITE, .buffer = buffer};
    const struct hipcl_range range = {.struct_size = sizeof range, .dimensions = 1, .global = {LEN}};
    OK(hipcl_kernel_launch_on_queue(twice, queue, &range, &argument, 1));
    OK(hipcl_kernel_launch_on_stream(twice, stream, &range, &argument, 1));
    OK(hipcl_buffer_download(buffer, numbers, BYTES));
    for (int i = 0; i < LEN; i++) CHECK(numbers[i] == 4.0f * (float)i);
    OK(hipcl_kernel_destroy(twice));
    OK(hipcl_program_destroy(program));
}

static int gone;

static void note(void *user) {
    CHECK(user == &gone);
    gone++;
}

static atomic_int stops;

/* Looks a buffer up again and again. */
static void *looks(void *buffer) {
    struct hipcl_buffer_info info = {.struct_size = sizeof info};
    while (!stops) {
        hipcl_status status = hipcl_buffer_get_info((hipcl_buffer)buffer, &info);
        CHECK(status == HIPCL_SUCCESS || status == HIPCL_ERROR_STALE_HANDLE);
    }
    return NULL;
}

static void memory_is_given_back_before_the_call_that_destroys_its_buffer_returns(hipcl_bridge bridge, void *svm) {
    for (int round = 0; round < 50; round++) {
        hipcl_buffer buffer;
        gone = 0;
        stops = 0;
        OK(hipcl_buffer_adopt_svm(bridge, svm, BYTES, HIPCL_SVM_COARSE, note, &gone, &buffer));
        pthread_t threads[3];
        for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, looks, buffer) == 0);
        hipcl_status status;
        while ((status = hipcl_buffer_destroy(buffer)) == HIPCL_ERROR_BUSY) sched_yield();
        CHECK(status == HIPCL_SUCCESS && gone == 1);
        stops = 1;
        for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(gone == 1);
    }
}

/* The caller's own count, as OpenCL tells it; none if it does not. */
#define REFERENCES(info, object, what) \
    (info((object), (what), sizeof count, &count, NULL) == 0 ? count : UINT32_MAX)

/* A thread of the driver may still hold the event of its last callback when everything of the library's is gone, and each
 * event holds what it is about. */
#define LETS_GO(info, object, what, expected)                                                         \
    do {                                                                                              \
        time_t end_ = time(NULL) + 10;                                                                \
        while (REFERENCES(info, object, what) != (expected) && time(NULL) < end_) sched_yield();      \
        CHECK(REFERENCES(info, object, what) == (expected));                                          \
    } while (0)

/* The owner's own command on its own queue, under an access. */
static void filled_by_the_owner(hipcl_buffer buffer, hipcl_queue queue, cl_command_queue native, cl_mem object) {
    const float three = 3.0f;
    void *pointer;
    /* ANCHOR: access */
    hipcl_access access;
    cl_mem memory;
    OK(hipcl_access_begin_queue(buffer, queue, HIPCL_ACCESS_WRITE, &access));
    OK(hipcl_access_cl_mem(access, &memory)); /* hipcl_access_pointer on a stream */
    /* clEnqueueFillBuffer */
    CHECK(fill_buffer(native, memory, &three, sizeof three, 0, BYTES, 0, NULL, NULL) == 0);
    /* ANCHOR_END: access */
    CHECK(memory == object);
    FAILS(HIPCL_ERROR_NOT_SUPPORTED, "use hipcl_access_cl_mem", hipcl_access_pointer(access, &pointer));
    /* ANCHOR: end */
    OK(hipcl_access_end(access));
    /* ANCHOR_END: end */
}

/* A second handle of a queue or a stream is as good as the first, for an access that the first has begun too. */
static void one_object_has_several_handles(hipcl_bridge bridge, hipcl_queue queue, cl_command_queue native,
                                           hipcl_stream stream, struct ihipStream_t *native_stream) {
    hipcl_program program;
    hipcl_kernel twice;
    hipcl_buffer buffer;
    hipcl_queue other_queue;
    hipcl_stream main_again, own, own_again;
    struct ihipStream_t *native_own;
    hipcl_access access;
    float numbers[LEN] = {1.0f};
    OK(hipcl_program_build(bridge, SOURCE, NULL, &program));
    OK(hipcl_kernel_create(program, "twice", &twice));
    OK(hipcl_buffer_create(bridge, BYTES, &buffer));
    OK(hipcl_buffer_upload(buffer, numbers, BYTES));
    OK(hipcl_queue_adopt(bridge, native, &other_queue));
    OK(hipcl_stream_adopt(bridge, native_stream, &main_again));
    OK(hipcl_stream_create(bridge, &own));
    OK(hipcl_stream_native(own, &native_own));
    OK(hipcl_stream_adopt(bridge, native_own, &own_again));

    struct hipcl_arg argument = {.struct_size = sizeof argument, .kind = HIPCL_ARG_ACCESS};
    const struct hipcl_range range = {.struct_size = sizeof range, .dimensions = 1, .global = {LEN}};
    OK(hipcl_access_begin_queue(buffer, queue, HIPCL_ACCESS_WRITE, &access));
    argument.access = access;
    OK(hipcl_kernel_launch_on_queue(twice, other_queue, &range, &argument, 1));
    OK(hipcl_access_end(access));
    const hipcl_stream handles[][2] = {{stream, main_again}, {own, own_again}};
    for (int i = 0; i < 2; i++) {
        OK(hipcl_access_begin_stream(buffer, handles[i][0], HIPCL_ACCESS_WRITE, &access));
        argument.access = access;
        OK(hipcl_kernel_launch_on_stream(twice, handles[i][1], &range, &argument, 1));
        OK(hipcl_access_end(access));
    }
    /* The library's own stream lives as long as its last handle. */
    OK(hipcl_stream_destroy(own));
    argument.kind = HIPCL_ARG_WRITE;
    argument.buffer = buffer;
    OK(hipcl_kernel_launch_on_stream(twice, own_again, &range, &argument, 1));
    OK(hipcl_stream_synchronize(own_again));
    OK(hipcl_stream_destroy(own_again));
    OK(hipcl_stream_destroy(main_again));
    OK(hipcl_queue_destroy(other_queue));
    OK(hipcl_buffer_download(buffer, numbers, BYTES));
    CHECK(numbers[0] == 16.0f);
    OK(hipcl_buffer_destroy(buffer));
    OK(hipcl_kernel_destroy(twice));
    OK(hipcl_program_destroy(program));
}

static void memory_of_every_origin(hipcl_bridge bridge, cl_context context, cl_command_queue native, hipcl_queue queue,
                                   hipcl_stream stream) {
    uint32_t count = 0;
    int32_t error;
    struct hipcl_buffer_info info = {.struct_size = sizeof info};
    hipcl_buffer buffer;

    /* A cl_mem: retained, and released with the buffer. */
    cl_mem object = create_buffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &error);
    CHECK(error == 0);
    OK(hipcl_buffer_adopt_cl_mem(bridge, object, HIPCL_ROUTE_AUTO, &buffer));
    OK(hipcl_buffer_get_info(buffer, &info));
    CHECK(info.bytes == BYTES && info.route == HIPCL_ROUTE_GPU_VA && info.is_copy == 0);
    doubled_on_both_sides(bridge, queue, stream, buffer);
    filled_by_the_owner(buffer, queue, native, object);
    hipcl_access access;
    float numbers[LEN];
    cl_mem none;
    OK(hipcl_access_begin_stream(buffer, stream, HIPCL_ACCESS_READ, &access));
    FAILS(HIPCL_ERROR_ARGUMENT, "for a HIP stream", hipcl_access_cl_mem(access, &none));
    OK(hipcl_buffer_download(buffer, numbers, BYTES));
    CHECK(numbers[0] == 3.0f && numbers[LEN - 1] == 3.0f);
    OK(hipcl_access_end(access));
    OK(hipcl_buffer_destroy(buffer));
    LETS_GO(mem_info, object, CL_MEM_REFERENCE_COUNT, 1u);
    CHECK(release_mem(object) == 0);

    /* Shared virtual memory: given back once, when the library is done with it. */
    void *svm = svm_alloc(context, CL_MEM_READ_WRITE, BYTES, 0);
    CHECK(svm != NULL);
    FAILS(HIPCL_ERROR_ARGUMENT, "", hipcl_buffer_adopt_svm(bridge, svm, 0, HIPCL_SVM_COARSE, note, &gone, &buffer));
    CHECK(gone == 0);
    OK(hipcl_buffer_adopt_svm(bridge, svm, BYTES, HIPCL_SVM_COARSE, note, &gone, &buffer));
    OK(hipcl_buffer_get_info(buffer, &info));
    CHECK(info.opencl_address == (uintptr_t)svm && info.hip_address == (uintptr_t)svm);
    doubled_on_both_sides(bridge, queue, stream, buffer);
    CHECK(gone == 0);
    OK(hipcl_buffer_destroy(buffer));
    CHECK(gone == 1);
    memory_is_given_back_before_the_call_that_destroys_its_buffer_returns(bridge, svm);

    /* A transform of numbers that begin where none may. */
    hipcl_fft fft;
    OK(hipcl_fft_create(bridge, 16, 1, &fft));
    OK(hipcl_buffer_adopt_svm(bridge, (char *)svm + 4, 128, HIPCL_SVM_COARSE, NULL, NULL, &buffer));
    FAILS(HIPCL_ERROR_ARGUMENT, "multiple of 8", hipcl_fft_enqueue_on_queue(fft, queue, HIPCL_FFT_FORWARD, buffer, buffer));
    OK(hipcl_buffer_destroy(buffer));
    OK(hipcl_fft_destroy(fft));
    svm_free(context, svm);

    /* HIP's memory by its address, which another buffer has. */
    hipcl_buffer owner;
    OK(hipcl_buffer_create_on(bridge, HIPCL_ROUTE_HIP_POINTER, 2 * BYTES, &owner));
    OK(hipcl_buffer_get_info(owner, &info));
    gone = 0;
    OK(hipcl_buffer_adopt_hip(bridge, (char *)(uintptr_t)info.hip_address + BYTES, BYTES, note, &gone, &buffer));
    doubled_on_both_sides(bridge, queue, stream, buffer);
    OK(hipcl_buffer_destroy(buffer));
    CHECK(gone == 1);
    OK(hipcl_buffer_destroy(owner));
    FAILS(HIPCL_ERROR_ARGUMENT, "`pointer` is null", hipcl_buffer_adopt_hip(bridge, NULL, BYTES, NULL, NULL, &buffer));

    /* A descriptor: it keeps the memory, and the import has the same bytes. */
    int fd;
    size_t offset, bytes;
    OK(hipcl_buffer_create_exportable(bridge, BYTES, &buffer));
    OK(hipcl_buffer_upload(buffer, numbers, BYTES));
    OK(hipcl_access_begin_stream(buffer, stream, HIPCL_ACCESS_READ, &access));
    FAILS(HIPCL_ERROR_BUSY, "open access", hipcl_buffer_export_fd(buffer, &fd, &offset, &bytes));
    CHECK(fd == -1);
    OK(hipcl_access_end(access));
    OK(hipcl_buffer_export_fd(buffer, &fd, &offset, &bytes));
    CHECK(fd >= 0 && bytes == BYTES);
    OK(hipcl_buffer_destroy(buffer));
    OK(hipcl_buffer_adopt_fd(bridge, fd, offset, bytes, &buffer));
    CHECK(close(fd) == 0);
    memset(numbers, 0, BYTES);
    OK(hipcl_buffer_download(buffer, numbers, BYTES));
    CHECK(numbers[0] == 3.0f && numbers[LEN - 1] == 3.0f);
    doubled_on_both_sides(bridge, queue, stream, buffer);
    OK(hipcl_buffer_destroy(buffer));
    FAILS(HIPCL_ERROR_SYSTEM, "hipcl_buffer_adopt_fd", hipcl_buffer_adopt_fd(bridge, 9999, 0, BYTES, &buffer));
    FAILS(HIPCL_ERROR_ARGUMENT, "`fd` is -1", hipcl_buffer_adopt_fd(bridge, -1, 0, BYTES, &buffer));
}

int main(void) {
    hipcl_bridge first, bridge;
    struct hipcl_native_handles natives = {.struct_size = sizeof natives};
    OK(hipcl_bridge_open(NULL, &first));
    OK(hipcl_bridge_native(first, &natives));
    load(natives.platform);

    uint32_t count = 0;
    int32_t error;
    const intptr_t properties[] = {CL_CONTEXT_PLATFORM, (intptr_t)natives.platform, 0};
    cl_context context = create_context(properties, 1, &natives.device, NULL, NULL, &error);
    CHECK(error == 0);
    cl_command_queue native = create_queue(context, natives.device, 0, &error);
    CHECK(error == 0);
    hipcl_stream theirs;
    struct ihipStream_t *native_stream;
    OK(hipcl_stream_create(first, &theirs));
    OK(hipcl_stream_native(theirs, &native_stream));
    uint32_t context_before = REFERENCES(context_info, context, CL_CONTEXT_REFERENCE_COUNT);
    uint32_t queue_before = REFERENCES(queue_info, native, CL_QUEUE_REFERENCE_COUNT);

    /* What does not belong together is refused. */
    FAILS(HIPCL_ERROR_ARGUMENT, "another context",
          hipcl_bridge_adopt(context, natives.device, natives.queue, native_stream, NULL, &bridge));
    FAILS(HIPCL_ERROR_ARGUMENT, "`queue` is null",
          hipcl_bridge_adopt(context, natives.device, NULL, native_stream, NULL, &bridge));

    OK(hipcl_bridge_adopt(context, natives.device, native, native_stream, NULL, &bridge));
    struct hipcl_native_handles own = {.struct_size = sizeof own};
    OK(hipcl_bridge_native(bridge, &own));
    CHECK(own.context == context && own.queue == native && own.stream == native_stream);
    CHECK(own.device == natives.device && own.hip_device == 0);
    hipcl_queue queue, second;
    hipcl_stream stream;
    OK(hipcl_queue_main(bridge, &queue));
    OK(hipcl_stream_main(bridge, &stream));
    FAILS(HIPCL_ERROR_ARGUMENT, "another context", hipcl_queue_adopt(bridge, natives.queue, &second));
    cl_command_queue unordered =
        create_queue(context, natives.device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);
    if (error == 0) {
        FAILS(HIPCL_ERROR_ARGUMENT, "out of order", hipcl_queue_adopt(bridge, unordered, &second));
        CHECK(release_queue(unordered) == 0);
    }
    OK(hipcl_queue_adopt(bridge, native, &second));
    cl_command_queue same;
    OK(hipcl_queue_native(second, &same));
    CHECK(same == native);
    OK(hipcl_queue_destroy(second));
    one_object_has_several_handles(bridge, queue, native, stream, native_stream);

    memory_of_every_origin(bridge, context, native, queue, stream);
    struct hipcl_counters counters = {.struct_size = sizeof counters};
    OK(hipcl_bridge_counters(bridge, &counters));
    CHECK(counters.data_set == 0 && counters.input > 0 && counters.result > 0);

    /* All that was retained is released; the caller's own references stay. */
    OK(hipcl_queue_destroy(queue));
    OK(hipcl_stream_destroy(stream));
    OK(hipcl_bridge_destroy(bridge));
    OK(hipcl_stream_destroy(theirs));
    OK(hipcl_bridge_destroy(first));
    LETS_GO(queue_info, native, CL_QUEUE_REFERENCE_COUNT, queue_before);
    LETS_GO(context_info, context, CL_CONTEXT_REFERENCE_COUNT, context_before);
    CHECK(release_queue(native) == 0);
    CHECK(release_context(context) == 0);
    return 0;
}
