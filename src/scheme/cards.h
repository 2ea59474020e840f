/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks of a node tell each other when they meet, and the runs that they put where all see them. */

#ifndef SAR_SCHEME_CARDS_H
#define SAR_SCHEME_CARDS_H

#include "net/window.h"
#include "scheme/scheme.h"

/** One rank's. */
struct sar_card {
    int64_t status;
    uint64_t nnz;                    /**< of its input, then of its part */
    uint64_t room;                   /**< elements that there is room for where these lie */
    struct sar_segment_name shelf;   /**< that these lie on */
    struct sar_segment_name storage; /**< handed back; then, from rank 0, the one to use */
    uint32_t index_size;             /**< in storage, 0 for none */
    uint16_t minus_zero;
    uint16_t fresh; /**< a shelf that others may not have mapped; stays until reset */
};

/** Go to the next meeting. */
void sar_card_show(struct sar_request *request, struct sar_card *card);

/** The card of a rank at the last meeting. */
const struct sar_card *sar_card_of(const struct sar_request *request, int rank);

/** Where memory to share is all that a rank lacks, and all ranks may take another scheme: let its card say
 * so at the next meeting, which must be one that all ranks go to, and the call go on until then. */
enum sar_status sar_card_excuse(const struct sar_request *request, struct sar_card *card,
                                enum sar_status status);

/** Whether all ranks fare well: SAR_UNSHARED, on all ranks, where some are excused and the others do. To be
 * asked before anything that may fail on one rank. */
enum sar_status sar_cards_hear(const struct sar_request *request);

/** Whether a rank told of a shelf that others still have to map: nobody may go on to close it before. */
bool sar_cards_fresh(const struct sar_request *request);

/** Bytes of a run in memory, indices and aligned behind them the values, and where these lie. */
uint64_t sar_run_bytes(const struct sar_shape *shape, unsigned index_size, uint64_t nnz);
struct sar_run sar_run_lay_out(void *memory, unsigned index_size, uint64_t nnz);

/** Whether the callers of all ranks can use an outcome in storage that they have in common. */
bool sar_cards_adopt(const struct sar_request *request);

/** On rank 0: storage for as many elements as the outcome can have. Only pages that are used cost memory. */
enum sar_status sar_card_choose_storage(const struct sar_request *request, struct sar_card *card, size_t nnz,
                                        struct sar_storage **storage);

/** On all ranks, once they have met: make what rank 0 chose the place of the outcome, and the caller's. */
enum sar_status sar_card_adopt_storage(struct sar_request *request, size_t nnz, struct sar_storage **storage);

/** Elements that an own shelf has room for as it is. */
size_t sar_shelf_fits(const struct sar_shelf *shelf, const struct sar_shape *shape);

/** Find room for a run on an own shelf, and note that on a card. What was there may be lost. */
enum sar_status sar_card_room(const struct sar_request *request, struct sar_card *card,
                              struct sar_shelf *shelf, size_t nnz, struct sar_run *run);

/** The same for a run that is there already, and of which run->nnz elements are kept. */
enum sar_status sar_card_widen(const struct sar_request *request, struct sar_card *card,
                               struct sar_shelf *shelf, size_t nnz, struct sar_run *run);

/** What a rank has put on its shelf, as its card says. A fresh one is mapped even if nothing is there: later
 * calls that need no meeting for that may be the first to find something. */
enum sar_status sar_card_look(const struct sar_request *request, struct sar_shelf *shelf, int rank,
                              struct sar_run *run);

#endif
