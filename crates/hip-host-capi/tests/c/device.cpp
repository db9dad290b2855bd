// Versions, error texts, and what the devices say of themselves.
#include "check.h"

static void versions(void) {
    int runtime = 0, driver = 0;
    OK(hipInit(0));
    INVALID(hipInit(1));
    OK(hipRuntimeGetVersion(&runtime));
    OK(hipDriverGetVersion(&driver));
    CHECK(runtime == HIP_VERSION && driver == HIP_VERSION);
    INVALID(hipRuntimeGetVersion(NULL));
    INVALID(hipDriverGetVersion(NULL));
}

static void errors(void) {
    CHECK(strcmp(hipGetErrorName(hipErrorOutOfMemory), "hipErrorOutOfMemory") == 0);
    CHECK(strcmp(hipGetErrorString(hipErrorOutOfMemory), "out of memory") == 0);
    CHECK(strcmp(hipGetErrorName((hipError_t)98765), "hipErrorUnknown") == 0);
    const char* text = NULL;
    OK(hipDrvGetErrorName(hipErrorNotReady, &text));
    CHECK(strcmp(text, "hipErrorNotReady") == 0);
    INVALID(hipDrvGetErrorName((hipError_t)98765, &text));

    RETURNS(hipErrorInvalidDevice, hipSetDevice(99));
    RETURNS(hipErrorInvalidDevice, hipPeekAtLastError());
    RETURNS(hipErrorInvalidDevice, hipGetLastError());
    RETURNS(hipSuccess, hipGetLastError());
}

static void devices(void) {
    int count = 0, device = -1;
    OK(hipGetDeviceCount(&count));
    CHECK(count == 2);
    INVALID(hipGetDeviceCount(NULL));
    OK(hipSetDevice(1));
    OK(hipGetDevice(&device));
    CHECK(device == 1);
    RETURNS(hipErrorInvalidDevice, hipSetDevice(-1));
    RETURNS(hipErrorInvalidDevice, hipSetDevice(2));
    OK(hipGetDevice(&device));
    CHECK(device == 1);
    OK(hipSetDevice(0));
}

static void identity(void) {
    char first[64], second[64], name[256];
    OK(hipDeviceGetPCIBusId(first, sizeof first, 0));
    OK(hipDeviceGetPCIBusId(second, sizeof second, 1));
    CHECK(strcmp(first, second) != 0);
    INVALID(hipDeviceGetPCIBusId(first, 3, 0));
    RETURNS(hipErrorInvalidDevice, hipDeviceGetPCIBusId(second, sizeof second, 7));
    int found = -1;
    OK(hipDeviceGetByPCIBusId(&found, second));
    CHECK(found == 1);
    INVALID(hipDeviceGetByPCIBusId(&found, "0000:00:00.0"));
    hipUUID a, b;
    OK(hipDeviceGetUuid(&a, 0));
    OK(hipDeviceGetUuid(&b, 1));
    CHECK(memcmp(&a, &b, sizeof a) != 0);
    INVALID(hipDeviceGetUuid(NULL, 0));
    OK(hipDeviceGetName(name, sizeof name, 0));
    CHECK(strlen(name) > 0);
    size_t bytes = 0;
    OK(hipDeviceTotalMem(&bytes, 0));
    CHECK(bytes > 0);
}

static void properties(void) {
    hipDeviceProp_t p;
    OK(hipGetDeviceProperties(&p, 1));
    RETURNS(hipErrorInvalidDevice, hipGetDeviceProperties(&p, 2));
    INVALID(hipGetDeviceProperties(NULL, 0));
    int value = 0;
    OK(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0));
    CHECK(value == p.warpSize && value == 64);
    OK(hipDeviceGetAttribute(&value, hipDeviceAttributeMaxThreadsPerBlock, 0));
    CHECK(value == p.maxThreadsPerBlock);
    OK(hipDeviceGetAttribute(&value, hipDeviceAttributePciBusId, 1));
    CHECK(value == p.pciBusID);
    INVALID(hipDeviceGetAttribute(NULL, hipDeviceAttributeWarpSize, 0));
    INVALID(hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)123456, 0));
    RETURNS(hipErrorInvalidDevice, hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, -1));
}

int main(void) {
    versions();
    errors();
    devices();
    identity();
    properties();
    still_usable();
    return 0;
}
