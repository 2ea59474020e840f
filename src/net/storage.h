/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for an outcome that the ranks of a node have in common. Every rank holds it until it lets go;
 * then it may be used again. It outlives the window it was made in. */

#ifndef SAR_NET_STORAGE_H
#define SAR_NET_STORAGE_H

#include "net/window.h"

struct sar_storage;

/** Most that a process has at a time, in results that it keeps; with more it has memory of its own. */
extern int sar_storage_most;

/** Find storage of so many bytes for an outcome, and let all ranks of the window hold it. One rank does so
 * and tells the others its name.
 * @param back  what all ranks hand back, to be used if it will do, or NULL */
enum sar_status sar_storage_choose(struct sar_window *window, struct sar_storage *back, size_t bytes,
                                   struct sar_storage **storage);

/** The storage that another rank has chosen. */
enum sar_status sar_storage_find(struct sar_window *window, struct sar_storage *back,
                                 const struct sar_segment_name *name, struct sar_storage **storage);

struct sar_segment_name sar_storage_name(const struct sar_storage *storage);
void *sar_storage_memory(const struct sar_storage *storage);

/** Once every rank has found it: nobody else will. */
void sar_storage_seal(struct sar_storage *storage);

/** Keep the mapping until sar_storage_let_go. */
void sar_storage_keep(struct sar_storage *storage);

/** This rank holds it no longer. Local, at any time. */
void sar_storage_let_go(struct sar_storage *storage);

/** Forget the spares of a window. */
void sar_storage_forget(struct sar_window *window);

#endif
