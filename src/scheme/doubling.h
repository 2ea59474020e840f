/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages in which pairs of ranks exchange and reduce all they have, at distances 1, 2, 4 …: all of
 * recursive_doubling and the first part of hybrid. */

#ifndef SAR_SCHEME_DOUBLING_H
#define SAR_SCHEME_DOUBLING_H

#include "scheme/fold.h"
#include "scheme/scheme.h"

/** The beginning of the state of such a scheme. */
struct sar_doubling {
    struct sar_run mine; /**< what this rank's group has so far */
    struct sar_message outgoing;
    int distance; /**< in places, of the exchange that comes next */
    int limit;    /**< the first distance that is not exchanged at; 0: the power of two */
    bool delivered;
};

/** In this order: hand over, exchange; then what the scheme does besides; give back and take back. */
#define SAR_DOUBLING_IN                                                \
    { .compute = sar_doubling_begin, .post = sar_doubling_fold_in },   \
    {                                                                  \
        .compute = sar_doubling_prepare, .post = sar_doubling_exchange \
    }
#define SAR_DOUBLING_OUT                                            \
    { .compute = sar_doubling_end, .post = sar_doubling_fold_out }, \
    {                                                               \
        .compute = sar_doubling_take_back                           \
    }

enum sar_status sar_doubling_begin(struct sar_request *request);
void sar_doubling_fold_in(struct sar_request *request);
enum sar_status sar_doubling_prepare(struct sar_request *request);
void sar_doubling_exchange(struct sar_request *request);
enum sar_status sar_doubling_end(struct sar_request *request);
void sar_doubling_fold_out(struct sar_request *request);
enum sar_status sar_doubling_take_back(struct sar_request *request);

/** Reduce what the last exchange has brought, if that has not been done. */
enum sar_status sar_doubling_absorb(struct sar_request *request);

/** Predicted time of the exchanges at distances below limit, and of folding. */
double sar_doubling_seconds(const struct sar_agreed *agreed, int limit);

#endif
