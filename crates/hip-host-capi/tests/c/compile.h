// Kernels for the C programs: source text to a loaded module.
#pragma once

#include "check.h"

#include <hip/hiprtc.h>

#define RTC(call)                                                                               \
    do {                                                                                        \
        const hiprtcResult returned_ = (call);                                                  \
        if (returned_ != HIPRTC_SUCCESS) {                                                      \
            fprintf(stderr, "%s:%d: %s returned %s\n", __FILE__, __LINE__, #call,               \
                    hiprtcGetErrorString(returned_));                                           \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

static inline hipModule_t compiled(const char* source) {
    hiprtcProgram program;
    size_t bytes = 0;
    RTC(hiprtcCreateProgram(&program, source, "kernels.hip", 0, NULL, NULL));
    const hiprtcResult result = hiprtcCompileProgram(program, 0, NULL);
    if (result != HIPRTC_SUCCESS) {
        RTC(hiprtcGetProgramLogSize(program, &bytes));
        char* log = (char*)malloc(bytes);
        RTC(hiprtcGetProgramLog(program, log));
        fprintf(stderr, "%s\n", log);
        exit(1);
    }
    RTC(hiprtcGetCodeSize(program, &bytes));
    char* code = (char*)malloc(bytes);
    RTC(hiprtcGetCode(program, code));
    RTC(hiprtcDestroyProgram(&program));
    hipModule_t module;
    OK(hipModuleLoadData(&module, code));
    free(code);
    return module;
}

static inline hipFunction_t kernel(hipModule_t module, const char* name) {
    hipFunction_t function;
    OK(hipModuleGetFunction(&function, module, name));
    return function;
}
