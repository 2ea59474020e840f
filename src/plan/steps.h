/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of the life of a call, for plan/call.c and each other. */

#ifndef SAR_PLAN_STEPS_H
#define SAR_PLAN_STEPS_H

#include "plan/call.h"

/** Everything local that may fail before the scheme. What goes wrong is put into call->verdict. */
void sar_call_prepare(struct sar_pending *op);

/** Bytes of a request's state, enough for any scheme. */
size_t sar_call_state_size(void);

/** What this rank tells the others. */
struct sar_ballot sar_call_ballot(const struct sar_pending *op);

/** What all ranks together say. */
struct sar_verdict sar_call_judge(const struct sar_ballot *all);

/** Fill in op->agreed and op->selection from what has been agreed. */
enum sar_status sar_call_select(struct sar_pending *op);

/** Seconds that the call has taken its caller so far, without those in which it was profiled or nobody let it
 * move, for what hides behind computing costs nothing. */
double sar_call_seconds(const struct sar_pending *op);

/** After an agreement: learn from the time of the call before this one, now known of all ranks. */
void sar_call_do_homework(struct sar_pending *op);

/** After a selection: begin to time the scheme that runs. */
void sar_call_set_homework(struct sar_pending *op);

/** At the end of a call: leave its time to the next agreement. */
void sar_call_end_homework(struct sar_pending *op);

/** Make the request ready for the scheme that was selected, but for its input. */
void sar_call_open(struct sar_pending *op);

/** Undo that and all a scheme has done, but for the input that does not depend on it. */
void sar_call_reopen(struct sar_pending *op);

/** Make coordinates in a device's memory the request's input; nothing for others. */
void sar_call_fetch(struct sar_pending *op);

/** Give the request its input, in the form that the scheme takes. A failure in here, as of sar_call_fetch, is
 * this rank's alone until the first message tells the others. */
void sar_call_compact(struct sar_pending *op);

/** A span of the call, such as a phase, and its end. */
struct sar_span sar_call_span(const struct sar_pending *op, const char *name);
void sar_call_span_end(const struct sar_pending *op, struct sar_span *span);

/** Write the outcome into dense buffers; nothing for coordinates.
 * @param work  set to what the host has done */
void sar_call_write(struct sar_pending *op, struct sar_work *work);

/** Make the context's report tell of this call. */
void sar_call_report(struct sar_pending *op, double seconds);

/** Of a call with call->remote set: mark a vector's elements, or sort coordinates where that is needed, which
 * come to the host if something is wrong with them.
 * @param bad  see sar_ingest */
enum sar_status sar_remote_look(struct sar_pending *op, long long *bad);

/** Make coordinates, or a vector's elements, the request's input, unless they are already. */
enum sar_status sar_remote_fetch(struct sar_pending *op, long long *bad);
enum sar_status sar_remote_compact(struct sar_pending *op);

/** Or offer them to a scheme that takes parts, with a worker where messages are worth it. False if not:
 * without a worker it takes nothing but vectors, whose elements have not come. */
bool sar_remote_offer(struct sar_pending *op);

/** Let the vector pass instead, or MPI have it. */
enum sar_status sar_remote_pass(struct sar_pending *op);

/** Write the outcome into the vector; and put what a worker made of coordinates where the sink wants it. */
enum sar_status sar_remote_write(struct sar_pending *op, const struct sar_delivery *outcome);
enum sar_status sar_remote_assemble(struct sar_pending *op);

/** Give back what any call has taken for that. */
void sar_remote_end(struct sar_pending *op);

/** Of a vector on the host: whether its elements came in a parcel; take memory for what may be done to them;
 * make the vector's elements the request's input; or let a vector come of them in the call's buffers. */
bool sar_call_has_elements(const struct sar_call *call);
enum sar_status sar_call_look_into(struct sar_pending *op);
enum sar_status sar_call_take_elements(struct sar_pending *op);
void sar_call_pass(struct sar_pending *op);

/** Write the outcome to where it goes from in a stream. False where it is to stand in the call's buffers, and
 * does not yet. */
bool sar_call_send(struct sar_pending *op, const struct sar_delivery *outcome);

/** Log the scheme that was chosen, where it is not the one of the tensor's call before, and why a scheme that
 * is asked for does not run. */
void sar_call_tell_selection(const struct sar_pending *op);

/** Log the profile that was made, or that none was. */
void sar_call_tell_profile(const struct sar_pending *op);

#endif
