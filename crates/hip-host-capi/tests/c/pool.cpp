// Memory in stream order, pools, and managed memory.
#include "check.h"

static uint64_t used(hipMemPool_t pool) {
    uint64_t bytes = 0;
    OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &bytes));
    return bytes;
}

static void stream_order(void) {
    hipStream_t stream;
    hipMemPool_t pool;
    unsigned* p = NULL;
    OK(hipStreamCreate(&stream));
    OK(hipDeviceGetDefaultMemPool(&pool, 0));
    const uint64_t before = used(pool);
    OK(hipMallocAsync((void**)&p, 4096, stream));
    CHECK(used(pool) == before + 4096);
    OK(hipMemsetAsync(p, 1, 4096, stream));
    OK(hipFreeAsync(p, stream));
    OK(hipStreamSynchronize(stream));
    CHECK(used(pool) == before);
    INVALID(hipFreeAsync(p, stream));
    INVALID(hipMemset(p, 0, 1));
    OK(hipFreeAsync(NULL, stream));
    INVALID(hipMallocAsync(NULL, 16, stream));
    UNCHECKED_BY_ROCM(INVALID(hipMallocAsync((void**)&p, 16, (hipStream_t)nonsense())));
    OK(hipMallocAsync((void**)&p, 0, stream));
    CHECK(p == NULL);
    RETURNS(hipErrorOutOfMemory, hipMallocAsync((void**)&p, (size_t)1 << 60, stream));
    OK(hipMallocAsync((void**)&p, 64, stream));
    OK(hipFree(p));
    OK(hipStreamDestroy(stream));
}

static void pools(void) {
    hipMemPool_t pool, current, first;
    hipMemPoolProps props;
    memset(&props, 0, sizeof props);
    INVALID(hipMemPoolCreate(&pool, &props));
    props.allocType = hipMemAllocationTypePinned;
    props.location.type = hipMemLocationTypeDevice;
    OK(hipMemPoolCreate(&pool, &props));
    props.location.id = 9;
    INVALID(hipMemPoolCreate(&current, &props));
    OK(hipDeviceGetDefaultMemPool(&first, 0));
    OK(hipDeviceSetMemPool(0, pool));
    OK(hipDeviceGetMemPool(&current, 0));
    CHECK(current == pool && first != pool);
    void* p = NULL;
    OK(hipMallocAsync(&p, 512, NULL));
    CHECK(used(pool) == 512);
    uint64_t threshold = 1 << 20, value = 0;
    OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
    OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReleaseThreshold, &value));
    CHECK(value == threshold);
    INVALID(hipMemPoolSetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &threshold));
    INVALID(hipMemPoolGetAttribute(pool, (hipMemPoolAttr)99, &value));
    OK(hipMemPoolTrimTo(pool, 0));
    hipMemAccessFlags flags;
    hipMemLocation here = {hipMemLocationTypeDevice, 0};
    OK(hipMemPoolGetAccess(&flags, pool, &here));
    CHECK(flags == hipMemAccessFlagsProtReadWrite);
    // Memory outlives its pool.
    OK(hipMemPoolDestroy(pool));
    OK(hipMemset(p, 0, 512));
    OK(hipFreeAsync(p, NULL));
    OK(hipDeviceGetMemPool(&current, 0));
    CHECK(current == first);
    INVALID(hipMemPoolDestroy(pool));
    INVALID(hipMemPoolDestroy(NULL));
    OK(hipDeviceSynchronize());
}

static void managed(void) {
    char* p = NULL;
    int value = 9;
    OK(hipMallocManaged((void**)&p, 8192, hipMemAttachGlobal));
    OK(hipMemRangeGetAttribute(&value, sizeof value, hipMemRangeAttributeReadMostly, p, 8192));
    CHECK(value == 0);
    OK(hipMemAdvise(p, 4096, hipMemAdviseSetReadMostly, 0));
    OK(hipMemRangeGetAttribute(&value, sizeof value, hipMemRangeAttributeReadMostly, p, 4096));
    CHECK(value == 1);
    OK(hipMemRangeGetAttribute(&value, sizeof value, hipMemRangeAttributeReadMostly, p, 4097));
    CHECK(value == 0);
    OK(hipMemPrefetchAsync(p, 8192, 0, NULL));
    OK(hipDeviceSynchronize());
    OK(hipMemRangeGetAttribute(&value, sizeof value, hipMemRangeAttributeLastPrefetchLocation, p, 8192));
    CHECK(value == 0);
    OK(hipMemPrefetchAsync(p + 4096, 4096, hipCpuDeviceId, NULL));
    OK(hipDeviceSynchronize());
    OK(hipMemRangeGetAttribute(&value, sizeof value, hipMemRangeAttributeLastPrefetchLocation, p, 8192));
    CHECK(value == hipInvalidDeviceId);
    OK(hipMemAdvise(p, 8192, hipMemAdviseSetAccessedBy, hipCpuDeviceId));
    int list[2];
    OK(hipMemRangeGetAttribute(list, sizeof list, hipMemRangeAttributeAccessedBy, p, 100));
    CHECK(list[0] == hipCpuDeviceId && list[1] == hipInvalidDeviceId);
    RETURNS(hipErrorInvalidDevice, hipMemPrefetchAsync(p, 8192, 5, NULL));
    INVALID(hipMemPrefetchAsync(p, 8193, 0, NULL));
    INVALID(hipMemPrefetchAsync(NULL, 1, 0, NULL));
    INVALID(hipMemAdvise(p, 8192, (hipMemoryAdvise)55, 0));
    INVALID(hipMemAdvise(p, 0, hipMemAdviseSetReadMostly, 0));
    INVALID(hipStreamAttachMemAsync(NULL, p, 0, hipMemAttachSingle));
    INVALID(hipStreamAttachMemAsync(NULL, p, 0, 77));
    OK(hipFree(p));
    INVALID(hipMemAdvise(p, 4096, hipMemAdviseSetReadMostly, 0));
}

int main(void) {
    stream_order();
    pools();
    managed();
    still_usable();
    return 0;
}
