/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes of formats of others, which the library does not send: computed from their published definitions. */
#ifndef PERF_OTHER_FORMATS_H
#define PERF_OTHER_FORMATS_H

/** A format of others. */
struct perf_other_format {
    const char *name;
    /** Returns the bytes of nnz elements of so many bytes, at random slots, without message headers. */
    double (*bytes)(double slots, double nnz, double element_size);
};

/** All of them, ended by a format without a name. */
extern const struct perf_other_format perf_other_formats[];

#endif
