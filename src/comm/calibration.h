/* SPDX-License-Identifier: BSD-3-Clause */
/* Calibration files, which save the machine constants of a communicator, and fingerprints, which tell if
 * they hold for another communicator. doc/model.md describes the file format. */

#ifndef SAR_COMM_CALIBRATION_H
#define SAR_COMM_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/config.h"
#include "comm/machine.h"

enum { SAR_FINGERPRINT_CHARS = 128 };

/** Constants of one communicator hold for another one with an equal fingerprint. Texts are printable ASCII.
 * The members are JSON keys of calibration files. */
struct sar_fingerprint {
    char library[SAR_FINGERPRINT_CHARS]; /**< version of this library */
    char mpi[SAR_FINGERPRINT_CHARS];     /**< first line of MPI_Get_library_version */
    char cpu[SAR_FINGERPRINT_CHARS];     /**< processor model of this rank's host */
    char hosts[SAR_FINGERPRINT_CHARS];   /**< hash of the processor models and counts of all ranks' hosts */
    int processors;                      /**< processors of this rank's host that the job may use */
    int ranks, nodes;
};

/** The content of a calibration file. */
struct sar_calibration {
    struct sar_fingerprint fingerprint;
    struct sar_machine machine;
};

/** Makes the fingerprint of a communicator. Members cpu and processors differ between hosts of different
 * kinds. Collective over comm. */
enum sar_status sar_fingerprint_make(const struct sar_comm *comm, struct sar_fingerprint *fingerprint);

/** Writes the first line of MPI_Get_library_version to `text`. Allowed before MPI_Init. */
void sar_fingerprint_mpi_version(char text[SAR_FINGERPRINT_CHARS]);

/** Reads the file that config->calibration names, and applies its constants to the settings of the same
 * names. Local.
 * @param here fingerprint to compare with the file's, or NULL to accept any
 * @param machine set to the file's constants if it fits
 * @param fits set to false if the file's schema or fingerprint differ; then no setting is changed
 * @param message buffer for a sentence: why the file does not fit, or, with SAR_BAD_SETTING, which error it
 *   has */
enum sar_status sar_calibration_apply(struct sar_config *config, const struct sar_fingerprint *here,
                                      struct sar_machine *machine, bool *fits, char *message,
                                      size_t capacity);

/** Writes a calibration file. It replaces an existing file completely, or leaves it unchanged. Local.
 * @param message  buffer for a sentence, with SAR_BAD_SETTING */
enum sar_status sar_calibration_write(const char *path, const struct sar_calibration *calibration,
                                      char *message, size_t capacity);

#endif
