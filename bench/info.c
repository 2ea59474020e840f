/* SPDX-License-Identifier: BSD-3-Clause */
#include "info.h"

#include <stdio.h>

enum { EXIT_OUTPUT = 1, EXIT_USAGE = 2 };

static bool print(const struct info_options *options)
{
    struct info_settings settings;

    if ((options->knobs || options->explain) && !info_settings_read(&settings))
        return false;
    if (!options->knobs && !options->schemes && !options->explain)
        info_print_build(options->json);
    if (options->knobs)
        info_print_knobs(&settings, options->json);
    if (options->schemes)
        info_print_schemes(options->json);
    return !options->explain || info_print_prices(options, &settings);
}

int main(int argc, char **argv)
{
    struct info_options options;
    enum info_verdict verdict = info_options_read(argc, argv, &options);

    if (verdict == INFO_BAD_USAGE || (verdict == INFO_GO_ON && !print(&options)))
        return EXIT_USAGE;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "mpix_sparse_info: cannot write all of the standard output\n");
        return EXIT_OUTPUT;
    }
    return 0;
}
