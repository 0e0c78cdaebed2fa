/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What cake_sce says by rtnetlink beyond cake. Its options and statistics are those of <linux/pkt_sched.h>, TCA_CAKE_*,
 * with the same numbers, types and units, and these.
 */
#ifndef BAKEOFF_CAKE_ATTRIBUTES_H
#define BAKEOFF_CAKE_ATTRIBUTES_H

/*
 * An option, u32: n of sce-thresh n. 0 switches marking off. The number is that of the SCE project's cake, in whose
 * tree 19 was another option, which mainline never had.
 */
#define TCA_CAKE_SCE	20

/* In the statistics of a tin, u32: packets that became ECT(1). It leaves room for what mainline may add. */
#define TCA_CAKE_TIN_STATS_SCE_MARKED_PACKETS	64

#endif
