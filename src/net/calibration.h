/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_CALIBRATION_H
#define SAR_NET_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/config.h"
#include "net/fingerprint.h"
#include "net/machine.h"

/** What a calibration file holds. doc/model.md has its form. */
struct sar_calibration {
    struct sar_fingerprint fingerprint;
    struct sar_machine machine;
};

/** Whether this library was built with what reads and writes the files. */
bool sar_calibration_available(void);

/** Read the file that a knob names, and let it set those that stand for constants. Local.
 * @param here     what the file's fingerprint is compared with, or NULL
 * @param machine  the file's constants
 * @param fits     false where schema or fingerprint are others: then nothing is set
 * @param why      room for a sentence that tells why the file does not fit, or what is wrong with it on
 *   SAR_BAD_KNOB: it cannot be read, or is malformed, or has what a knob cannot be */
enum sar_status sar_calibration_apply(struct sar_config *config, const struct sar_fingerprint *here,
                                      struct sar_machine *machine, bool *fits, char *why, size_t room);

/** Write a file in place of the one that may be there, all of it or nothing. Local.
 * @param why  room for a sentence on SAR_BAD_KNOB */
enum sar_status sar_calibration_write(const char *path, const struct sar_calibration *calibration, char *why,
                                      size_t room);

#endif
