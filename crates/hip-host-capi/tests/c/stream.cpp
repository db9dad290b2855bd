// Streams and events: order, waiting, callbacks, time, and handles that are gone.
#include "check.h"

#include <atomic>
#include <thread>

static std::atomic<int> gate;

// Holds a stream until the program opens the gate.
static void wait_for_gate(void*) {
    while (gate.load() == 0) std::this_thread::yield();
}

static void add_one(void* counter) { ((std::atomic<int>*)counter)->fetch_add(1); }

static void call_back(hipStream_t, hipError_t status, void* counter) {
    if (status == hipSuccess) add_one(counter);
}

static void order_across_streams(void) {
    hipStream_t first, second;
    hipEvent_t reached;
    OK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    OK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    OK(hipEventCreateWithFlags(&reached, hipEventDisableTiming));
    OK(hipEventQuery(reached));
    gate = 0;
    OK(hipLaunchHostFunc(first, wait_for_gate, NULL));
    OK(hipEventRecord(reached, first));
    OK(hipStreamWaitEvent(second, reached, 0));
    RETURNS(hipErrorNotReady, hipStreamQuery(second));
    RETURNS(hipErrorNotReady, hipEventQuery(reached));
    gate = 1;
    OK(hipStreamSynchronize(second));
    OK(hipEventQuery(reached));
    OK(hipEventSynchronize(reached));
    OK(hipEventDestroy(reached));
    OK(hipStreamDestroy(first));
    OK(hipStreamDestroy(second));
    UNCHECKED_BY_ROCM(RETURNS(hipErrorContextIsDestroyed, hipStreamDestroy(second)));
    UNCHECKED_BY_ROCM(RETURNS(hipErrorContextIsDestroyed, hipStreamSynchronize(second)));
    RETURNS(hipErrorContextIsDestroyed, hipEventDestroy(reached));
    RETURNS(hipErrorInvalidHandle, hipEventDestroy(NULL));
    RETURNS(hipErrorInvalidHandle, hipEventQuery(NULL));
}

static void callbacks(void) {
    std::atomic<int> calls{0};
    hipStream_t stream;
    OK(hipStreamCreate(&stream));
    OK(hipLaunchHostFunc(stream, add_one, &calls));
    OK(hipStreamAddCallback(stream, call_back, &calls, 0));
    INVALID(hipStreamAddCallback(stream, call_back, &calls, 1));
    INVALID(hipLaunchHostFunc(stream, NULL, NULL));
    OK(hipStreamSynchronize(stream));
    CHECK(calls == 2);
    OK(hipStreamDestroy(stream));
}

static void time_between_events(void) {
    hipEvent_t start, stop, untimed;
    float ms = -1;
    OK(hipEventCreate(&start));
    OK(hipEventCreate(&stop));
    OK(hipEventCreateWithFlags(&untimed, hipEventDisableTiming));
    RETURNS(hipErrorInvalidHandle, hipEventElapsedTime(&ms, start, stop));
    OK(hipEventRecord(start, NULL));
    OK(hipEventRecord(stop, NULL));
    OK(hipEventRecord(untimed, NULL));
    OK(hipDeviceSynchronize());
    OK(hipEventElapsedTime(&ms, start, stop));
    CHECK(ms >= 0);
    INVALID(hipEventElapsedTime(NULL, start, stop));
    RETURNS(hipErrorInvalidHandle, hipEventElapsedTime(&ms, start, untimed));
    INVALID(hipEventCreateWithFlags(&untimed, 0x800));
    OK(hipEventDestroy(start));
    OK(hipEventDestroy(stop));
    OK(hipEventDestroy(untimed));
}

static void properties(void) {
    int least = 0, greatest = 0, priority = 7;
    unsigned flags = 7;
    hipStream_t stream;
    hipDevice_t device = 7;
    OK(hipDeviceGetStreamPriorityRange(&least, &greatest));
    OK(hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, greatest));
    OK(hipStreamGetPriority(stream, &priority));
    OK(hipStreamGetFlags(stream, &flags));
    OK(hipStreamGetDevice(stream, &device));
    CHECK(priority == greatest && flags == hipStreamNonBlocking && device == 0);
    INVALID(hipStreamCreateWithFlags(&stream, 4));
    INVALID(hipStreamCreate(NULL));
    OK(hipStreamDestroy(stream));
    UNCHECKED_BY_ROCM(RETURNS(hipErrorContextIsDestroyed, hipStreamQuery((hipStream_t)nonsense())));
    OK(hipStreamSynchronize(hipStreamPerThread));
    RETURNS(hipErrorInvalidHandle, hipStreamDestroy(NULL));
}

int main(void) {
    order_across_streams();
    callbacks();
    time_between_events();
    properties();
    still_usable();
    return 0;
}
