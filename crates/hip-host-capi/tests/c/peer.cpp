// Several devices: access to each other, copies between them, contexts, limits, and starting afresh.
#include "check.h"

static void peer_access(void) {
    int can = -1;
    OK(hipDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1);
    OK(hipDeviceCanAccessPeer(&can, 0, 0));
    CHECK(can == 0);
    INVALID(hipDeviceCanAccessPeer(NULL, 0, 1));
    RETURNS(hipErrorInvalidDevice, hipDeviceCanAccessPeer(&can, 0, 9));
    OK(hipDeviceEnablePeerAccess(1, 0));
    RETURNS(hipErrorPeerAccessAlreadyEnabled, hipDeviceEnablePeerAccess(1, 0));
    INVALID(hipDeviceEnablePeerAccess(1, 1));
    RETURNS(hipErrorInvalidDevice, hipDeviceEnablePeerAccess(0, 0));
    OK(hipDeviceDisablePeerAccess(1));
    RETURNS(hipErrorPeerAccessNotEnabled, hipDeviceDisablePeerAccess(1));
    OK(hipDeviceGetP2PAttribute(&can, hipDevP2PAttrAccessSupported, 0, 1));
    CHECK(can == 1);
    RETURNS(hipErrorInvalidDevice, hipDeviceGetP2PAttribute(&can, hipDevP2PAttrAccessSupported, 1, 1));
    INVALID(hipDeviceGetP2PAttribute(&can, (hipDeviceP2PAttr)99, 0, 1));
    uint32_t link = 0, hops = 0;
    OK(hipExtGetLinkTypeAndHopCount(0, 1, &link, &hops));
    CHECK(hops == 1);
    INVALID(hipExtGetLinkTypeAndHopCount(1, 1, &link, &hops));
}

static void copies_between_devices(void) {
    hipPointerAttribute_t a;
    unsigned* first = counted(500, 3);
    unsigned* second = NULL;
    OK(hipSetDevice(1));
    OK(hipMalloc((void**)&second, 500 * sizeof(unsigned)));
    OK(hipPointerGetAttributes(&a, second));
    CHECK(a.device == 1);
    OK(hipMemcpyPeer(second, 1, first, 0, 500 * sizeof(unsigned)));
    OK(hipDeviceSynchronize());
    CHECK(is_counted(second, 500, 3));
    OK(hipMemset(second, 0, 500 * sizeof(unsigned)));
    OK(hipMemcpyPeerAsync(second, 1, first, 0, 500 * sizeof(unsigned), NULL));
    OK(hipStreamSynchronize(NULL));
    CHECK(is_counted(second, 500, 3));
    RETURNS(hipErrorInvalidDevice, hipMemcpyPeer(second, 2, first, 0, 4));
    RETURNS(hipErrorInvalidDevice, hipMemcpyPeer(second, 1, first, -1, 4));
    INVALID(hipMemcpyPeer(second, 1, first, 0, 501 * sizeof(unsigned)));
    OK(hipFree(second));
    OK(hipFree(first));
    OK(hipSetDevice(0));
}

static void contexts(void) {
    hipCtx_t first = NULL, second = NULL, top = NULL;
    hipDevice_t device = -1;
    RETURNS(hipErrorInvalidContext, hipCtxPopCurrent(&top));
    OK(hipCtxCreate(&first, 0, 0));
    OK(hipCtxCreate(&second, 0, 1));
    // A new context is on top of the stack, and the device stays.
    OK(hipCtxGetDevice(&device));
    CHECK(device == 0 && first != second);
    OK(hipCtxGetCurrent(&top));
    CHECK(top == first);
    OK(hipCtxPopCurrent(&top));
    CHECK(top == second);
    OK(hipCtxSetCurrent(first));
    OK(hipCtxGetDevice(&device));
    CHECK(device == 0);
    OK(hipCtxPushCurrent(second));
    OK(hipCtxDestroy(second));
    UNCHECKED_BY_ROCM(RETURNS(hipErrorContextIsDestroyed, hipCtxDestroy(second)));
    OK(hipCtxDestroy(first));
    INVALID(hipCtxDestroy(NULL));
    UNCHECKED_BY_ROCM(RETURNS(hipErrorInvalidContext, hipCtxSetCurrent((hipCtx_t)nonsense())));
    INVALID(hipCtxCreate(&first, 0, 5));
    RETURNS(hipErrorNotSupported, hipCtxSynchronize());

    unsigned flags = 9;
    int active = -1;
    OK(hipDevicePrimaryCtxRetain(&first, 1));
    CHECK(first == second);
    OK(hipDevicePrimaryCtxGetState(1, &flags, &active));
    CHECK(flags == 0);
    OK(hipDevicePrimaryCtxRelease(1));
    RETURNS(hipErrorContextAlreadyInUse, hipDevicePrimaryCtxSetFlags(1, 0));
    RETURNS(hipErrorInvalidDevice, hipDevicePrimaryCtxRetain(&first, 2));
    OK(hipSetDevice(0));
}

static void settings(void) {
    size_t bytes = 0;
    unsigned flags = 0;
    OK(hipDeviceGetLimit(&bytes, hipLimitMallocHeapSize));
    OK(hipDeviceSetLimit(hipLimitMallocHeapSize, bytes * 2));
    size_t doubled = 0;
    OK(hipDeviceGetLimit(&doubled, hipLimitMallocHeapSize));
    CHECK(doubled == bytes * 2);
    RETURNS(hipErrorUnsupportedLimit, hipDeviceGetLimit(&bytes, (hipLimit_t)3));
    INVALID(hipDeviceGetLimit(NULL, hipLimitStackSize));
    OK(hipSetDeviceFlags(hipDeviceScheduleYield));
    OK(hipGetDeviceFlags(&flags));
    CHECK(flags == hipDeviceScheduleYield);
    INVALID(hipSetDeviceFlags(hipDeviceScheduleYield | hipDeviceScheduleSpin));
    INVALID(hipSetDeviceFlags(0x1000));
    OK(hipDeviceSetCacheConfig(hipFuncCachePreferL1));
}

static void reset(void) {
    void* p = NULL;
    hipStream_t stream;
    OK(hipMalloc(&p, 64));
    OK(hipStreamCreate(&stream));
    OK(hipDeviceReset());
    INVALID(hipMemset(p, 0, 64));
    UNCHECKED_BY_ROCM(RETURNS(hipErrorContextIsDestroyed, hipStreamQuery(stream)));
    still_usable();
}

int main(void) {
    peer_access();
    copies_between_devices();
    contexts();
    settings();
    reset();
    return 0;
}
