/* What the test programs share. */
#ifndef CHECK_H
#define CHECK_H

#include <hipcl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The call succeeds. */
#define OK(call)                                                                                      \
    do {                                                                                              \
        hipcl_status status_ = (call);                                                                \
        if (status_ != HIPCL_SUCCESS) {                                                               \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call,                         \
                    hipcl_status_name(status_), hipcl_last_error());                                  \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

/* The call fails with this status, and its text has these words. */
#define FAILS(expected, words, call)                                                                  \
    do {                                                                                              \
        hipcl_status status_ = (call);                                                                \
        if (status_ != (expected) || strstr(hipcl_last_error(), (words)) == NULL) {                   \
            fprintf(stderr, "%s:%d: %s: %s, not %s with \"%s\": %s\n", __FILE__, __LINE__, #call,     \
                    hipcl_status_name(status_), hipcl_status_name(expected), (words),                 \
                    hipcl_last_error());                                                              \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

#define CHECK(condition)                                                                              \
    do {                                                                                              \
        if (!(condition)) {                                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                 \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)

#endif
