// Words that streams wait for and write, and the threads' own streams.
#include "check.h"

static void waits_and_writes(void) {
    uint32_t* word = NULL;
    uint64_t* wide = NULL;
    hipStream_t waiting, writing;
    OK(hipHostMalloc((void**)&word, 64, 0));
    OK(hipMalloc((void**)&wide, 64));
    OK(hipMemset(wide, 0, 64));
    // The fill is in the null stream, which the streams below do not wait for.
    OK(hipStreamSynchronize(NULL));
    *word = 0;
    OK(hipStreamCreateWithFlags(&waiting, hipStreamNonBlocking));
    OK(hipStreamCreateWithFlags(&writing, hipStreamNonBlocking));
    OK(hipStreamWaitValue32(waiting, word, 5, hipStreamWaitValueGte, 0xffffffff));
    OK(hipStreamWriteValue64(waiting, wide, 99, 0));
    RETURNS(hipErrorNotReady, hipStreamQuery(waiting));
    OK(hipStreamWriteValue32(writing, word, 4, 0));
    OK(hipStreamSynchronize(writing));
    RETURNS(hipErrorNotReady, hipStreamQuery(waiting));
    OK(hipStreamWriteValue32(writing, word, 6, 0));
    OK(hipStreamSynchronize(waiting));
    uint64_t seen = 0;
    OK(hipMemcpy(&seen, wide, sizeof seen, hipMemcpyDeviceToHost));
    CHECK(seen == 99);

    OK(hipStreamWaitValue64(waiting, wide, 0x60, hipStreamWaitValueAnd, ~0ull));
    OK(hipStreamWaitValue64(waiting, wide, 3, hipStreamWaitValueEq, 0xf));
    OK(hipStreamWaitValue32(waiting, word, 0, hipStreamWaitValueNor, 0xffffffff));
    OK(hipStreamSynchronize(waiting));

    char ordinary[64] = {0};
    INVALID(hipStreamWaitValue32(waiting, word, 5, 17, 0xffffffff));
    INVALID(hipStreamWaitValue32(waiting, NULL, 5, 0, 0xffffffff));
    INVALID(hipStreamWriteValue32(waiting, ordinary, 5, 0));
    UNCHECKED_BY_ROCM(INVALID(hipStreamWriteValue64(waiting, (char*)wide + 4, 5, 0)));
    INVALID(hipStreamWriteValue64(waiting, wide + 8, 5, 0));
    RETURNS(hipErrorContextIsDestroyed, hipStreamWriteValue32((hipStream_t)nonsense(), word, 5, 0));
    OK(hipStreamDestroy(waiting));
    OK(hipStreamDestroy(writing));
    OK(hipFree(wide));
    OK(hipHostFree(word));
}

static void own_streams(void) {
    unsigned* p = counted(100, 1);
    unsigned host[100];
    OK(hipMemcpyAsync_spt(host, p, sizeof host, hipMemcpyDeviceToHost, NULL));
    OK(hipStreamSynchronize_spt(NULL));
    CHECK(host[99] == 100);
    OK(hipMemset_spt(p, 0, sizeof host));
    OK(hipStreamSynchronize(hipStreamPerThread));
    OK(hipMemcpy_spt(host, p, sizeof host, hipMemcpyDeviceToHost));
    CHECK(host[0] == 0 && host[99] == 0);
    unsigned flags = 7;
    OK(hipStreamGetFlags_spt(NULL, &flags));
    CHECK(flags == hipStreamDefault);
    OK(hipFree(p));
}

int main(void) {
    waits_and_writes();
    own_streams();
    still_usable();
    return 0;
}
