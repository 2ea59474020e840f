/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of a communicator: one value for each setting of the library. */

#ifndef SAR_BASE_CONFIG_H
#define SAR_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/setting_type.h"
#include "base/status.h"

/** Most settings that struct sar_config can hold the source of. */
enum { SAR_SETTINGS_MAX = 48 };

/** Cost model that prices the schemes. */
enum sar_model { SAR_MODEL_MEASURED, SAR_MODEL_PAPER };

/** Precision of float values in messages. */
enum sar_wire_precision { SAR_PRECISION_FULL, SAR_PRECISION_BF16, SAR_PRECISION_FP16 };

/** Meaning of integers of 2 bytes in user buffers. */
enum sar_int16_type { SAR_ELEMENT_INTEGER, SAR_ELEMENT_BF16, SAR_ELEMENT_FP16 };

/** Use of device memory in MPI calls. */
enum sar_cuda_aware_mode { SAR_CUDA_AWARE_AUTO, SAR_CUDA_AWARE_YES, SAR_CUDA_AWARE_NO };

/** Relayed pull of `balanced`. */
enum sar_relay_mode { SAR_RELAY_AUTO, SAR_RELAY_ON, SAR_RELAY_OFF };

/** Progress of nonblocking calls: by callers that wait or test, or by a thread. */
enum sar_progress_mode { SAR_PROGRESS_WAIT, SAR_PROGRESS_THREAD };

/** Source of a setting's value. A later source overrides an earlier one. */
enum sar_config_source {
    SAR_SOURCE_DEFAULT,
    SAR_SOURCE_CALIBRATION,
    SAR_SOURCE_ENVIRONMENT,
    SAR_SOURCE_COMM_INFO,
    SAR_SOURCE_PLAN_INFO,
    SAR_SOURCES
};

/** All settings of one communicator. Holds no pointers, since rank 0 sends its bytes to all ranks. Schemes,
 * formats and partitions are texts, since other components know the valid names. */
struct sar_config {
    char scheme[SAR_SETTING_TEXT];    /**< name, or "auto" */
    char push_wire[SAR_SETTING_TEXT]; /**< format's name, "auto" or "smallest" */
    char pull_wire[SAR_SETTING_TEXT]; /**< as push_wire */
    int wire_values;                  /**< enum sar_wire_precision */
    int element;                      /**< enum sar_int16_type */
    char partition[SAR_SETTING_TEXT]; /**< name, or "auto" */
    int grain;                        /**< elements, or SAR_AUTO */
    uint64_t columns;                 /**< most slices of a row, or SAR_U64_AUTO */
    int relay;                        /**< enum sar_relay_mode */
    int model;                        /**< enum sar_model */
    int cuda_aware;                   /**< enum sar_cuda_aware_mode */
    int progress;                     /**< enum sar_progress_mode */
    uint64_t threads;                 /**< threads of a call's work, or SAR_U64_AUTO */
    bool explain, learn;
    bool check_starts;                   /**< all starts of plans agree */
    bool speculate;                      /**< small calls send messages beside their agreement */
    uint64_t cuda_least;                 /**< elements of a message from which devices reduce and encode */
    uint64_t seed;                       /**< seed of the hash; 0: drawn */
    uint64_t profile_every;              /**< calls from one profile of a tensor to the next */
    uint64_t forward;                    /**< most calls without agreement after a dense call */
    uint64_t segment;                    /**< bytes of a message in segments, or SAR_U64_AUTO */
    uint64_t staging;                    /**< bytes of a block of pinned memory */
    uint64_t chunk;                      /**< most bytes handed to MPI at a time */
    uint64_t throttle;                   /**< long messages at a time, 0: all, or SAR_U64_AUTO */
    uint64_t long_message;               /**< bytes from which a message is long */
    bool preload_nonblocking;            /**< libmpix_sparse_preload takes MPI_Iallreduce too */
    uint64_t preload_min_bytes;          /**< smallest vector that libmpix_sparse_preload probes */
    double preload_limit;                /**< share of the calls' bytes that probes may cost */
    uint64_t recompute;                  /**< calls for which oktopk keeps its boundaries */
    uint64_t fuse;                       /**< most bytes of a plan that is fused, or SAR_U64_AUTO */
    uint64_t nodes;                      /**< number of nodes; 0: as detected */
    double imbalance;                    /**< upper limit of the imbalance that the planner's grain causes */
    double stall;                        /**< seconds of waiting before a warning; 0: no warning */
    double alpha, beta, gamma, overhead; /**< seconds; 0: measured */
    char calibration[SAR_SETTING_PATH];  /**< file with the machine's constants, or "none" */
    char log[SAR_SETTING_TEXT];          /**< rank 0's; each process uses its own, see log.h */
    char log_file[SAR_SETTING_PATH];     /**< rank 0's, as log */
    char trace[SAR_SETTING_PATH];        /**< rank 0's, as log; or "none" */
    char preload_report[SAR_SETTING_PATH];  /**< file that libmpix_sparse_preload writes, or "none" */
    unsigned char source[SAR_SETTINGS_MAX]; /**< enum sar_config_source of setting i */
};

/** Returns the text of a setting, or NULL. The name is in capitals, without prefix. */
typedef const char *(*sar_config_lookup_fn)(const char *name, void *arg);

/** One source of texts for settings. */
struct sar_config_layer {
    enum sar_config_source source;
    sar_config_lookup_fn lookup;
    void *arg; /**< second argument of lookup */
};

/** Sets all settings: from lookup, with source SAR_SOURCE_ENVIRONMENT, or to their defaults. Local.
 * On SAR_BAD_SETTING, leaves config unchanged and writes the reason to error_text. */
enum sar_status sar_config_load(struct sar_config *config, sar_config_lookup_fn lookup, void *arg,
                                char *error_text, size_t capacity);

/** Sets the settings that the layer has a text for, except those that a later source has set. Local.
 * On SAR_BAD_SETTING, as sar_config_load. */
enum sar_status sar_config_apply(struct sar_config *config, const struct sar_config_layer *layer,
                                 char *error_text, size_t capacity);

/** Returns the first entry from variables[*at] on that begins with MPIX_SPARSE_ and names no setting, or
 * NULL. Advances *at past the entry and sets *length to the length of its name. */
const char *sar_config_unknown(char *const variables[], size_t *at, size_t *length);

/** Sets name, default and help of setting i. Returns false if i is past the last setting. */
bool sar_config_setting(size_t i, const char **name, const char **fallback, const char **help);

/** Writes the value of setting i as a text that parses back to it, and sets its source. Returns false if i is
 * past the last setting. */
bool sar_config_format(const struct sar_config *config, size_t i, char *text, size_t capacity,
                       enum sar_config_source *source);

/** True if two configurations hold equal values. Otherwise *at is the first setting that differs. */
bool sar_config_equal(const struct sar_config *a, const struct sar_config *b, size_t *at);

/** Returns the source of the setting with this name. */
enum sar_config_source sar_config_source_of(const struct sar_config *config, const char *name);

/** Writes a setting's full name as its source spells it: MPIX_SPARSE_SCHEME in the environment,
 * mpix_sparse_scheme in an info object. */
void sar_config_spell(const char *name, enum sar_config_source source, char *text, size_t capacity);

/** Returns a source in words. */
const char *sar_config_source_name(enum sar_config_source source);

/** Returns the setting nearest to the first `length` characters of a name, both without prefix, or NULL if
 * more than a third of the letters differ. */
const char *sar_config_nearest(const char *name, size_t length);

/** Warns of each variable of the environment that has the library's prefix and is no setting. The first call
 * in a process does; others do nothing. */
void sar_config_warn_unknown(void);

#endif
