/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_BASE_CONFIG_H
#define SAR_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { SAR_KNOB_TEXT = 64, SAR_KNOB_PATH = 1024, SAR_MOST_KNOBS = 40 };

/** Which model prices the schemes. */
enum sar_model { SAR_MODEL_MEASURED, SAR_MODEL_PAPER };

/** How values of a type that has a narrow form travel. */
enum sar_values { SAR_VALUES_FULL, SAR_VALUES_BF16, SAR_VALUES_FP16 };

/** What integers of 2 bytes stand for. */
enum sar_element { SAR_ELEMENT_INTEGER, SAR_ELEMENT_BF16, SAR_ELEMENT_FP16 };

/** Whether MPI is handed device memory. */
enum sar_aware { SAR_AWARE_AUTO, SAR_AWARE_YES, SAR_AWARE_NO };

/** What moves calls in flight. */
enum sar_progress { SAR_PROGRESS_WAIT, SAR_PROGRESS_THREAD };

/** Grain that the planner chooses. */
enum { SAR_AUTO = 0 };

/** A whole number, of bytes or messages, that the model chooses. */
#define SAR_WHOLE_AUTO UINT64_MAX

/** Where the value of a knob came from; a later one goes before an earlier one. */
enum sar_origin {
    SAR_FROM_DEFAULT,
    SAR_FROM_CALIBRATION,
    SAR_FROM_ENVIRONMENT,
    SAR_FROM_COMM_INFO,
    SAR_FROM_PLAN_INFO,
    SAR_ORIGINS
};

/** All knobs of one communicator. Plain bytes, so that rank 0's can be sent to the others. Names of schemes,
 * formats and partitions are kept as text: their rooms know which exist. */
struct sar_config {
    char scheme[SAR_KNOB_TEXT];    /**< or "auto" */
    char push_wire[SAR_KNOB_TEXT]; /**< or "auto", "smallest" */
    char pull_wire[SAR_KNOB_TEXT];
    int wire_values;               /**< enum sar_values */
    int element;                   /**< enum sar_element */
    char partition[SAR_KNOB_TEXT]; /**< or "auto" */
    int grain;                     /**< or SAR_AUTO */
    int model;                     /**< enum sar_model */
    int cuda_aware;                /**< enum sar_aware */
    int progress;                  /**< enum sar_progress */
    bool explain, learn;
    uint64_t cuda_least;                  /**< elements of a message from which devices reduce and code */
    uint64_t seed;                        /**< 0: drawn */
    uint64_t profile_every;               /**< calls from one profile of a tensor to the next */
    uint64_t forward;                     /**< calls, at most, that follow on a dense one unseen */
    uint64_t segment;                     /**< bytes of a message in segments, or SAR_WHOLE_AUTO */
    uint64_t staging;                     /**< bytes of a block of pinned memory */
    uint64_t chunk;                       /**< most bytes handed to MPI at a time */
    uint64_t throttle;                    /**< long messages at a time, 0: all, or SAR_WHOLE_AUTO */
    uint64_t long_message;                /**< bytes from which a message is long */
    bool preload_nonblocking;             /**< libmpix_sparse_preload takes MPI_Iallreduce too */
    uint64_t preload_min_bytes;           /**< smallest vector that it looks at */
    double preload_limit;                 /**< share of the calls that its looks may cost */
    uint64_t recompute;                   /**< calls from one choice of boundaries to the next, for oktopk */
    uint64_t fuse;                        /**< most bytes of a plan that is fused, or SAR_WHOLE_AUTO */
    uint64_t nodes;                       /**< 0: as found */
    double imbalance;                     /**< limit that the planner's grain keeps to */
    double stall;                         /**< seconds of waiting that are warned of; 0: none */
    double alpha, beta, gamma, overhead;  /**< 0: measured */
    char calibration[SAR_KNOB_PATH];      /**< file with the machine's constants, or "none" */
    char log[SAR_KNOB_TEXT];              /**< rank 0's; every process follows its own, see log.h */
    char log_file[SAR_KNOB_PATH];         /**< likewise */
    char trace[SAR_KNOB_PATH];            /**< likewise; or "none" */
    char preload_report[SAR_KNOB_PATH];   /**< file that it writes, or "none" */
    unsigned char origin[SAR_MOST_KNOBS]; /**< enum sar_origin of each knob, by its place */
};

/** The text of a knob, or NULL. `name` comes without prefix, in capitals. */
typedef const char *(*sar_lookup_fn)(const char *name, void *from);

/** One place where knobs may have a text. */
struct sar_source {
    enum sar_origin origin;
    sar_lookup_fn lookup;
    void *from; /**< for lookup */
};

/** Set every knob from lookup, which stands for the environment, or to its default.
 * @param sentence  room for one, which tells what is wrong on SAR_BAD_KNOB */
enum sar_status sar_config_load(struct sar_config *config, sar_lookup_fn lookup, void *from, char *sentence,
                                size_t room);

/** Set the knobs for which a source has a text, but for those that came from an origin that goes before
 * it. On SAR_BAD_KNOB, as above, none is set. */
enum sar_status sar_config_apply(struct sar_config *config, const struct sar_source *source, char *sentence,
                                 size_t room);

/** What the environment says of something that is no knob of this library, or NULL. */
const char *sar_variable(const char *name);

/** Lookup in the environment, as MPIX_SPARSE_<name>. What is empty is not set. */
const char *sar_environment(const char *name, void *unused);

/** First name at or behind environ[*at] that begins with MPIX_SPARSE_ and is no knob; NULL when there is
 * none. Advances *at behind it; its length goes to *length. */
const char *sar_config_unknown(char *const environ[], size_t *at, size_t *length);

/** Name, default and help of knob i; false behind the last. */
bool sar_config_describe(size_t i, const char **name, const char **fallback, const char **help);

/** The value of knob i as a text that it could be set to, and where it came from; false behind the last. */
bool sar_config_show(const struct sar_config *config, size_t i, char *text, size_t room,
                     enum sar_origin *origin);

/** Whether two configurations hold the same values. If not, *at is the place of the first that differs. */
bool sar_config_same(const struct sar_config *a, const struct sar_config *b, size_t *at);

/** Where the value of a knob came from. */
enum sar_origin sar_config_origin(const struct sar_config *config, const char *name);

/** A knob's name as it is written in a place that values come from: MPIX_SPARSE_SCHEME in the environment,
 * mpix_sparse_scheme in an info object. */
void sar_knob_spell(const char *name, enum sar_origin origin, char *text, size_t room);

/** An origin in words. */
const char *sar_origin_name(enum sar_origin origin);

#endif
