/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_ROLL_H
#define SAR_NET_ROLL_H

#include "net/net.h"

/** Who has arrived at the collective operations of a communicator, as far as its ranks tell each other when
 * they wait for long. */
struct sar_roll;

/** Memory for the roll of a communicator, or NULL. */
struct sar_roll *sar_roll_make(int ranks);

/** NULL is allowed. */
void sar_roll_free(struct sar_roll *roll);

/** Learn what the ranks are called. Collective. */
enum sar_status sar_roll_introduce(const struct sar_net *net);

/** By what names to tell of the ranks. */
const struct sar_roster *sar_roll_roster(const struct sar_roll *roll);

/** Begin to watch a collective operation that is about to be started. */
void sar_roll_begin(const struct sar_net *net, struct sar_collective *collective, const char *what);

/** Called after each fruitless look at it. Whoever waits for more than net->stall seconds sends word to the
 * other ranks, and a second later warns of those that it has no word from. */
void sar_roll_watch(const struct sar_net *net, struct sar_collective *collective);

/** Called where messages of a scheme are waited for, with stalls watched: tell those that wait in an
 * operation how far the caller has come. */
void sar_roll_answer(const struct sar_net *net);

/** Warn of a wait of so many seconds in an operation, and of the ranks that lack in it. */
void sar_roll_tell(const struct sar_net *net, const char *what, double waited,
                   bool (*lacks)(const void *of, int rank), const void *of);

/** Begin to count the words that are still to be received; nothing when it has been done. Collective, does
 * not wait. No operation may be under way. */
void sar_roll_end(const struct sar_net *net);

/** Whether they have been counted, on all ranks. */
bool sar_roll_counted(const struct sar_net *net);

/** Receive them, once they have been counted; afterwards no message is left. */
void sar_roll_settle(const struct sar_net *net);

#endif
