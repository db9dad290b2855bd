// The queued and the per-thread forms of copies, fills and stream calls, host memory by its several names, and contexts.
#include "check.h"

enum { COUNT = 1000, BYTES = COUNT * sizeof(unsigned) };

static hipStream_t stream;

// Whether rows of 8 bytes, 16 apart, hold `byte` and what lies between them 0; sets them to 0 again.
static int rows_hold(char* device, int rows, char byte) {
    char found[16 * 8];
    OK(hipMemcpy(found, device, 16 * rows, hipMemcpyDeviceToHost));
    int same = 1;
    for (int i = 0; i < 16 * rows; ++i) same &= found[i] == (i % 16 < 8 ? byte : 0);
    OK(hipMemset(device, 0, 16 * rows));
    return same;
}

static void fills(void) {
    unsigned *device = NULL, value = 0;
    OK(hipMalloc((void**)&device, BYTES));
    const auto all_are = [&](unsigned expected) {
        OK(hipStreamSynchronize(stream));
        OK(hipStreamSynchronize(hipStreamPerThread));
        OK(hipMemcpy(&value, device + COUNT - 1, sizeof value, hipMemcpyDeviceToHost));
        return value == expected;
    };
    OK(hipMemsetD8Async((hipDeviceptr_t)device, 0x12, BYTES, stream));
    CHECK(all_are(0x12121212));
    OK(hipMemsetD16Async((hipDeviceptr_t)device, 0x1234, 2 * COUNT, stream));
    CHECK(all_are(0x12341234));
    OK(hipMemsetD32Async((hipDeviceptr_t)device, 0x12345678, COUNT, stream));
    CHECK(all_are(0x12345678));
    OK(hipMemsetAsync_spt(device, 7, BYTES, hipStreamPerThread));
    CHECK(all_are(0x07070707));
    INVALID(hipMemsetD32Async((hipDeviceptr_t)device, 1, COUNT + 1, stream));
    INVALID(hipMemsetD8Async((hipDeviceptr_t)nonsense(), 1, 1, stream));

    char* rows = (char*)device;
    OK(hipMemset(rows, 0, BYTES));
    OK(hipMemset2DAsync(rows, 16, 1, 8, 4, stream));
    OK(hipStreamSynchronize(stream));
    CHECK(rows_hold(rows, 4, 1));
    OK(hipMemset2D_spt(rows, 16, 2, 8, 4));
    CHECK(rows_hold(rows, 4, 2));
    OK(hipMemset2DAsync_spt(rows, 16, 3, 8, 4, hipStreamPerThread));
    OK(hipStreamSynchronize(hipStreamPerThread));
    CHECK(rows_hold(rows, 4, 3));
    const hipPitchedPtr slices = make_hipPitchedPtr(rows, 16, 16, 4);
    const hipExtent extent = make_hipExtent(8, 4, 2);
    OK(hipMemset3DAsync(slices, 4, extent, stream));
    OK(hipStreamSynchronize(stream));
    CHECK(rows_hold(rows, 8, 4));
    OK(hipMemset3D_spt(slices, 5, extent));
    CHECK(rows_hold(rows, 8, 5));
    OK(hipMemset3DAsync_spt(slices, 6, extent, hipStreamPerThread));
    OK(hipStreamSynchronize(hipStreamPerThread));
    CHECK(rows_hold(rows, 8, 6));
    OK(hipFree(device));
}

static void copies(void) {
    unsigned *from = counted(COUNT, 1), *to = NULL, *host = NULL;
    OK(hipMalloc((void**)&to, BYTES));
    OK(hipHostAlloc((void**)&host, BYTES, hipHostMallocDefault));
    const auto arrived = [&] {
        OK(hipStreamSynchronize(stream));
        const int same = is_counted(to, COUNT, 1);
        OK(hipMemset(to, 0, BYTES));
        return same;
    };
    OK(hipMemcpyDtoD((hipDeviceptr_t)to, (hipDeviceptr_t)from, BYTES));
    OK(hipDeviceSynchronize());
    CHECK(arrived());
    OK(hipMemcpyDtoDAsync((hipDeviceptr_t)to, (hipDeviceptr_t)from, BYTES, stream));
    CHECK(arrived());
    OK(hipMemcpyDtoHAsync(host, (hipDeviceptr_t)from, BYTES, stream));
    OK(hipMemcpyHtoDAsync((hipDeviceptr_t)to, host, BYTES, stream));
    CHECK(arrived());
    OK(hipMemcpyWithStream(to, host, BYTES, hipMemcpyHostToDevice, stream));
    CHECK(arrived());
    OK(hipMemcpy2D_spt(to, 40, host, 40, 40, COUNT / 10, hipMemcpyHostToDevice));
    CHECK(arrived());
    OK(hipMemcpy2DAsync_spt(to, 40, from, 40, 40, COUNT / 10, hipMemcpyDeviceToDevice, stream));
    CHECK(arrived());
    hip_Memcpy2D part;
    memset(&part, 0, sizeof part);
    part.srcMemoryType = part.dstMemoryType = hipMemoryTypeDevice;
    part.srcDevice = (hipDeviceptr_t)from;
    part.dstDevice = (hipDeviceptr_t)to;
    part.srcPitch = part.dstPitch = part.WidthInBytes = 40;
    part.Height = COUNT / 10;
    OK(hipMemcpyParam2DAsync(&part, stream));
    CHECK(arrived());
    OK(hipDrvMemcpy2DUnaligned(&part));
    CHECK(arrived());
    INVALID(hipMemcpyDtoDAsync((hipDeviceptr_t)to, (hipDeviceptr_t)from, BYTES + 1, stream));
    OK(hipFreeHost(host));
    OK(hipFree(from));
    OK(hipFree(to));
}

static void host_memory(void) {
    void *host = NULL, *pitched = NULL;
    size_t bytes = 0, pitch = 0;
    OK(hipMallocHost(&host, 100));
    OK(hipFreeHost(host));
    INVALID(hipFreeHost(host));
    OK(hipMemAllocHost(&host, 100));
    OK(hipHostFree(host));
    OK(hipMemAllocPitch((hipDeviceptr_t*)&pitched, &pitch, 100, 10, 4));
    CHECK(pitch >= 100);
    OK(hipMemPtrGetInfo(pitched, &bytes));
    CHECK(bytes >= 10 * pitch);
    OK(hipFree(pitched));
    OK(hipMemPtrGetInfo(NULL, &bytes));
    CHECK(bytes == 0);
    INVALID(hipMallocHost(NULL, 100));
}

static void called(void* flag) { *(int*)flag += 1; }
static void called_back(hipStream_t, hipError_t status, void* flag) { *(int*)flag += status == hipSuccess ? 10 : 100; }

static void per_thread(void) {
    int flag = 0;
    hipEvent_t event;
    OK(hipEventCreate(&event));
    OK(hipLaunchHostFunc_spt(hipStreamPerThread, called, &flag));
    OK(hipStreamAddCallback_spt(hipStreamPerThread, called_back, &flag, 0));
    OK(hipEventRecord_spt(event, hipStreamPerThread));
    OK(hipStreamWaitEvent_spt(stream, event, 0));
    OK(hipStreamSynchronize(stream));
    CHECK(flag == 11);
    OK(hipStreamSynchronize(hipStreamPerThread));
    OK(hipStreamQuery_spt(hipStreamPerThread));
    OK(hipEventRecordWithFlags(event, stream, hipEventRecordDefault));
    OK(hipEventSynchronize(event));
    int priority = 99;
    OK(hipStreamGetPriority_spt(hipStreamPerThread, &priority));
    CHECK(priority == 0);
    CHECK(hipGetStreamDeviceId(stream) == 0);

    hipStreamCaptureStatus status = hipStreamCaptureStatusActive;
    OK(hipStreamIsCapturing_spt(stream, &status));
    CHECK(status == hipStreamCaptureStatusNone);
    hipGraph_t graph;
    hipGraphExec_t exec;
    OK(hipStreamBeginCapture_spt(stream, hipStreamCaptureModeGlobal));
    unsigned long long id = 0;
    OK(hipStreamGetCaptureInfo_spt(stream, &status, &id));
    CHECK(status == hipStreamCaptureStatusActive && id != 0);
    OK(hipLaunchHostFunc(stream, called, &flag));
    OK(hipStreamEndCapture_spt(stream, &graph));
    OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    OK(hipGraphUpload(exec, stream));
    OK(hipGraphLaunch_spt(exec, stream));
    OK(hipStreamSynchronize(stream));
    CHECK(flag == 12);
    OK(hipGraphExecDestroy(exec));
    OK(hipGraphDestroy(graph));
    OK(hipEventDestroy(event));
}

static void contexts_and_the_rest(void) {
    hipDevice_t device = 7;
    OK(hipDeviceGet(&device, 0));
    CHECK(device == 0);
    RETURNS(hipErrorInvalidDevice, hipDeviceGet(&device, 64));
    int major = 0, minor = 0, chosen = 7;
    OK(hipDeviceComputeCapability(&major, &minor, 0));
    CHECK(major == 9 && minor == 0);
    hipDeviceProp_t wanted;
    memset(&wanted, 0, sizeof wanted);
    OK(hipChooseDevice(&chosen, &wanted));
    CHECK(chosen == 0);
    hipSharedMemConfig config;
    OK(hipCtxGetSharedMemConfig(&config));
    OK(hipDeviceGetSharedMemConfig(&config));
    CHECK(config == hipSharedMemBankSizeFourByte);
    hipFuncCache_t cache;
    OK(hipDeviceGetCacheConfig(&cache));
    CHECK(cache == hipFuncCachePreferNone);
    const char* text = NULL;
    OK(hipDrvGetErrorString(hipErrorNotReady, &text));
    CHECK(strlen(text) > 0);
    const hipChannelFormatDesc desc = hipCreateChannelDesc(8, 8, 0, 0, hipChannelFormatKindUnsigned);
    CHECK(desc.x == 8 && desc.y == 8 && desc.z == 0 && desc.f == hipChannelFormatKindUnsigned);
    OK(hipDevicePrimaryCtxReset(0));
}

int main(void) {
    OK(hipStreamCreate(&stream));
    fills();
    copies();
    host_memory();
    per_thread();
    OK(hipStreamDestroy(stream));
    contexts_and_the_rest();
    still_usable();
    return 0;
}
