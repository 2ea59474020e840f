/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_QUOTA_H
#define SAR_NET_QUOTA_H

/** Processors that the groups which this process is in may have, all their processes taken together: the time
 * of so many, rounded up, as containers are limited; 0 where there is no limit, or none to be read.
 * @param root  of the file system; no text but in tests */
int sar_quota_processors(const char *root);

#endif
