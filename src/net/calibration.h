/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_CALIBRATION_H
#define SAR_NET_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>

#include "net/fingerprint.h"
#include "net/machine.h"

/** What a calibration file holds. doc/model.md has its form. */
struct sar_calibration {
    struct sar_fingerprint fingerprint;
    struct sar_machine machine;
};

/** Whether this library was built with what reads and writes the files. */
bool sar_calibration_available(void);

/** Read a file. Local.
 * @param here  what the file's fingerprint is compared with, or NULL
 * @param fits  false where schema or fingerprint are others: then *calibration is not set
 * @param why   room for a sentence that tells why the file does not fit, or what is wrong with it on
 *   SAR_BAD_KNOB: it cannot be read, or is malformed */
enum sar_status sar_calibration_read(const char *path, const struct sar_fingerprint *here,
                                     struct sar_calibration *calibration, bool *fits, char *why, size_t room);

/** Write a file in place of the one that may be there, all of it or nothing. Local.
 * @param why  room for a sentence on SAR_BAD_KNOB */
enum sar_status sar_calibration_write(const char *path, const struct sar_calibration *calibration, char *why,
                                      size_t room);

/** What sar_calibration_lookup looks in. */
struct sar_calibration_source {
    const struct sar_calibration *calibration;
    char text[32]; /**< the last answer */
};

/** The text of a knob that stands for a constant; a sar_lookup_fn. It lasts until the next look. */
const char *sar_calibration_lookup(const char *name, void *source);

#endif
