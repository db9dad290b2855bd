/* The doctor's findings by scripts in the folder that the first argument names. */
#include "check.h"

static char path[4096];

static const char *in(const char *folder, const char *name) {
    CHECK(snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path);
    return path;
}

static void asked(const char *program, hipcl_format format, const char *expected) {
    hipcl_text report;
    const char *text;
    size_t bytes;
    OK(hipcl_doctor(program, format, &report));
    OK(hipcl_text_get(report, &text, &bytes));
    CHECK(strcmp(text, expected) == 0 && bytes == strlen(expected));
    OK(hipcl_text_destroy(report));
}

int main(int count, char **values) {
    CHECK(count == 2);
    const char *folder = values[1];
    hipcl_text report;
    asked(in(folder, "works"), HIPCL_FORMAT_TEXT, "asked: doctor\n");
    asked(in(folder, "works"), HIPCL_FORMAT_JSON, "asked: doctor --json\n");
    /* That no route works is a finding. */
    asked(in(folder, "no-route"), HIPCL_FORMAT_TEXT, "asked: doctor\n");
    FAILS(HIPCL_ERROR_FAILED, "error: planted", hipcl_doctor(in(folder, "fails"), HIPCL_FORMAT_TEXT, &report));
    FAILS(HIPCL_ERROR_FAILED, "signal: 9", hipcl_doctor(in(folder, "dies"), HIPCL_FORMAT_TEXT, &report));
    FAILS(HIPCL_ERROR_SYSTEM, "pass the path of the command hipcl",
          hipcl_doctor(in(folder, "absent"), HIPCL_FORMAT_TEXT, &report));
    CHECK(report == NULL && hipcl_last_error_code() == 2);
    return 0;
}
