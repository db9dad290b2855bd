// Rows and slices: allocation, copies by every description, fills.
#include "check.h"

enum { WIDTH = 37, HEIGHT = 5, DEPTH = 3 };

static unsigned char at(int x, int y, int z) { return (unsigned char)(x + 40 * y + 7 * z + 1); }

static void rows(void) {
    unsigned char host[HEIGHT][WIDTH], back[HEIGHT][WIDTH];
    for (int y = 0; y < HEIGHT; ++y)
        for (int x = 0; x < WIDTH; ++x) host[y][x] = at(x, y, 0);
    void* device = NULL;
    size_t pitch = 0;
    OK(hipMallocPitch(&device, &pitch, WIDTH, HEIGHT));
    CHECK(pitch >= WIDTH && pitch % 256 == 0);
    OK(hipMemcpy2D(device, pitch, host, WIDTH, WIDTH, HEIGHT, hipMemcpyHostToDevice));
    OK(hipMemcpy2DAsync(back, WIDTH, device, pitch, WIDTH, HEIGHT, hipMemcpyDeviceToHost, NULL));
    OK(hipStreamSynchronize(NULL));
    CHECK(memcmp(host, back, sizeof host) == 0);
    RETURNS(hipErrorInvalidPitchValue,
            hipMemcpy2D(device, WIDTH - 1, host, WIDTH, WIDTH, HEIGHT, hipMemcpyHostToDevice));
    INVALID(hipMemcpy2D(device, pitch, host, WIDTH, WIDTH, HEIGHT + 1, hipMemcpyHostToDevice));

    OK(hipMemset2D(device, pitch, 9, 3, 2));
    INVALID(hipMemset2D(device, pitch, 9, pitch + 1, 2));
    hip_Memcpy2D part;
    memset(&part, 0, sizeof part);
    part.srcMemoryType = hipMemoryTypeDevice;
    part.srcDevice = device;
    part.srcPitch = pitch;
    part.srcXInBytes = 1;
    part.srcY = 1;
    part.dstMemoryType = hipMemoryTypeHost;
    part.dstHost = back;
    part.dstPitch = WIDTH;
    part.WidthInBytes = 4;
    part.Height = 2;
    OK(hipMemcpyParam2D(&part));
    CHECK(back[0][0] == 9 && back[0][1] == 9 && back[0][2] == host[1][3] && back[1][0] == host[2][1]);
    UNCHECKED_BY_ROCM(INVALID(hipMemcpyParam2D(NULL)));
    part.srcMemoryType = (hipMemoryType)77;
    UNCHECKED_BY_ROCM(INVALID(hipMemcpyParam2D(&part)));
    OK(hipFree(device));
    INVALID(hipMallocPitch(&device, NULL, 4, 4));
    INVALID(hipMallocPitch(&device, &pitch, (size_t)-1, 4));
}

static void slices(void) {
    static unsigned char host[DEPTH][HEIGHT][WIDTH], back[DEPTH][HEIGHT][WIDTH];
    for (int z = 0; z < DEPTH; ++z)
        for (int y = 0; y < HEIGHT; ++y)
            for (int x = 0; x < WIDTH; ++x) host[z][y][x] = at(x, y, z);
    hipPitchedPtr device;
    const hipExtent extent = {WIDTH, HEIGHT, DEPTH};
    OK(hipMalloc3D(&device, extent));
    CHECK(device.xsize == WIDTH && device.ysize == HEIGHT && device.pitch >= WIDTH);

    hipMemcpy3DParms up;
    memset(&up, 0, sizeof up);
    up.srcPtr = {host, WIDTH, WIDTH, HEIGHT};
    up.dstPtr = device;
    up.extent = extent;
    up.kind = hipMemcpyHostToDevice;
    OK(hipMemcpy3D(&up));

    hipMemcpy3DParms down;
    memset(&down, 0, sizeof down);
    down.srcPtr = device;
    down.dstPtr = {back, WIDTH, WIDTH, HEIGHT};
    down.extent = extent;
    down.kind = hipMemcpyDeviceToHost;
    OK(hipMemcpy3DAsync(&down, NULL));
    OK(hipStreamSynchronize(NULL));
    CHECK(memcmp(host, back, sizeof host) == 0);

    // A box from the middle, to the beginning.
    down.srcPos = {2, 1, 1};
    down.extent = {4, 3, 2};
    OK(hipMemcpy3D(&down));
    for (int z = 0; z < 2; ++z)
        for (int y = 0; y < 3; ++y) CHECK(memcmp(back[z][y], &host[z + 1][y + 1][2], 4) == 0);
    down.srcPos = {2, 1, 2};
    INVALID(hipMemcpy3D(&down));
    INVALID(hipMemcpy3D(NULL));
    up.srcArray = (hipArray_t)nonsense();
    INVALID(hipMemcpy3D(&up));

    HIP_MEMCPY3D driver;
    memset(&driver, 0, sizeof driver);
    driver.srcMemoryType = hipMemoryTypeDevice;
    driver.srcDevice = device.ptr;
    driver.srcPitch = device.pitch;
    driver.srcHeight = HEIGHT;
    driver.srcZ = 2;
    driver.dstMemoryType = hipMemoryTypeHost;
    driver.dstHost = back;
    driver.WidthInBytes = WIDTH;
    driver.Height = HEIGHT;
    driver.Depth = 1;
    OK(hipDrvMemcpy3D(&driver));
    CHECK(memcmp(back, host[2], sizeof host[2]) == 0);
    INVALID(hipDrvMemcpy3D(NULL));

    OK(hipMemset3D(device, 0xab, extent));
    down.srcPos = {0, 0, 0};
    down.extent = extent;
    OK(hipMemcpy3D(&down));
    CHECK(back[0][0][0] == 0xab && back[DEPTH - 1][HEIGHT - 1][WIDTH - 1] == 0xab);
    UNCHECKED_BY_ROCM(INVALID(hipMemset3D(device, 0, hipExtent{device.pitch + 1, 1, 1})));
    OK(hipFree(device.ptr));
}

int main(void) {
    rows();
    slices();
    still_usable();
    return 0;
}
