/* SPDX-License-Identifier: BSD-3-Clause */
/* Speculation: a call sends its first messages beside its consistency check, by the decisions of the last
 * call with such a tensor. If the check confirms them, the call has taken one latency less. Otherwise all
 * ranks discard these messages, and the call goes on as if it had sent none.
 *
 *     time = max(check, push) + pull, in place of check + push + pull
 *
 * Only small calls of schemes whose first messages go from every rank to every other one, where the check
 * takes one round (comm/agree.h): a rank then knows which ranks have sent such messages. */

#ifndef SAR_CORE_SPECULATE_H
#define SAR_CORE_SPECULATE_H

#include "core/active_call.h"

/** Keeps the decisions of this call for the next one with such a tensor, if that may speculate; a call whose
 * messages are confirmed goes on by those of the call before. Equal on all ranks. */
void sar_speculation_save(struct sar_active_call *op);

/** Sends the first messages of a call before its check. Returns false if the call has to wait for that; then
 * nothing was sent. Local. */
bool sar_speculation_begin(struct sar_active_call *op);

/** After the selection: returns true if all ranks have sent their first messages by decisions that still
 * hold. Equal on all ranks. */
bool sar_speculation_confirm(struct sar_active_call *op);

/** Discards the first messages of all ranks, after an agreement that does not confirm them. The task is as
 * before sar_speculation_begin. */
enum sar_status sar_speculation_abandon(struct sar_active_call *op);

#endif
