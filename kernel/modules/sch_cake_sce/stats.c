// SPDX-License-Identifier: GPL-2.0
/* Statistics, of the whole and of each tin. */
#include <net/gen_stats.h>
#include <net/netlink.h>

#include "attributes.h"
#include "cake.h"

static bool put_tin(const struct cake_tin *tin, struct sk_buff *skb)
{
	const struct cake_tin_stats *stats = &tin->stats;
	const struct {
		int attribute;
		u32 value;
	} rows[] = {
		{ TCA_CAKE_TIN_STATS_TARGET_US, div_u64(tin->params.target, NSEC_PER_USEC) },
		{ TCA_CAKE_TIN_STATS_INTERVAL_US, div_u64(tin->params.interval, NSEC_PER_USEC) },
		{ TCA_CAKE_TIN_STATS_SENT_PACKETS, stats->packets },
		{ TCA_CAKE_TIN_STATS_DROPPED_PACKETS, stats->drops },
		{ TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS, stats->marks },
		{ TCA_CAKE_TIN_STATS_SCE_MARKED_PACKETS, stats->sce_marks },
		{ TCA_CAKE_TIN_STATS_ACKS_DROPPED_PACKETS, stats->ack_drops },
		{ TCA_CAKE_TIN_STATS_PEAK_DELAY_US, div_u64(stats->peak_delay, NSEC_PER_USEC) },
		{ TCA_CAKE_TIN_STATS_AVG_DELAY_US, div_u64(stats->average_delay, NSEC_PER_USEC) },
		{ TCA_CAKE_TIN_STATS_BASE_DELAY_US, div_u64(stats->base_delay, NSEC_PER_USEC) },
		{ TCA_CAKE_TIN_STATS_BACKLOG_BYTES, tin->backlog },
		{ TCA_CAKE_TIN_STATS_WAY_INDIRECT_HITS, stats->way_hits },
		{ TCA_CAKE_TIN_STATS_WAY_MISSES, stats->way_misses },
		{ TCA_CAKE_TIN_STATS_WAY_COLLISIONS, stats->way_collisions },
		{ TCA_CAKE_TIN_STATS_SPARSE_FLOWS, tin->sparse_flows + tin->decaying_flows },
		{ TCA_CAKE_TIN_STATS_BULK_FLOWS, tin->bulk_flows },
		{ TCA_CAKE_TIN_STATS_UNRESPONSIVE_FLOWS, stats->unresponsive_flows },
		{ TCA_CAKE_TIN_STATS_MAX_SKBLEN, stats->max_len },
		{ TCA_CAKE_TIN_STATS_FLOW_QUANTUM, tin->flow_quantum },
	};
	u32 i;

	if (nla_put_u64_64bit(skb, TCA_CAKE_TIN_STATS_THRESHOLD_RATE64, tin->rate, TCA_CAKE_TIN_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_CAKE_TIN_STATS_SENT_BYTES64, stats->bytes, TCA_CAKE_TIN_STATS_PAD))
		return false;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if (nla_put_u32(skb, rows[i].attribute, rows[i].value))
			return false;
	return true;
}

/* In the order in which tc shows them; a tin's attribute is its position, counted from 1. */
static bool put_tins(const struct cake *q, struct sk_buff *skb)
{
	struct nlattr *all = nla_nest_start_noflag(skb, TCA_CAKE_STATS_TIN_STATS);
	struct nlattr *one;
	u8 i;

	if (!all)
		return false;
	for (i = 0; i < q->tins_used; i++) {
		one = nla_nest_start_noflag(skb, i + 1);
		if (!one || !put_tin(&q->tins[cake_tin_shown(q->config.diffserv, i)], skb))
			return false;
		nla_nest_end(skb, one);
	}
	nla_nest_end(skb, all);
	return true;
}

int cake_stats_dump(const struct cake *q, struct gnet_dump *d)
{
	struct nlattr *nest = nla_nest_start_noflag(d->skb, TCA_STATS_APP);

	if (!nest)
		return -1;
	if (nla_put_u64_64bit(d->skb, TCA_CAKE_STATS_CAPACITY_ESTIMATE64, q->autorate.peak, TCA_CAKE_STATS_PAD) ||
	    nla_put_u32(d->skb, TCA_CAKE_STATS_MEMORY_LIMIT, q->memory_limit) ||
	    nla_put_u32(d->skb, TCA_CAKE_STATS_MEMORY_USED, q->memory_max) ||
	    nla_put_u32(d->skb, TCA_CAKE_STATS_AVG_NETOFF, (q->lengths.header + 0x8000) >> 16) ||
	    nla_put_u32(d->skb, TCA_CAKE_STATS_MIN_NETLEN, q->lengths.min_network) ||
	    nla_put_u32(d->skb, TCA_CAKE_STATS_MAX_NETLEN, q->lengths.max_network) ||
	    nla_put_u32(d->skb, TCA_CAKE_STATS_MIN_ADJLEN, q->lengths.min_adjusted) ||
	    nla_put_u32(d->skb, TCA_CAKE_STATS_MAX_ADJLEN, q->lengths.max_adjusted) ||
	    !put_tins(q, d->skb)) {
		nla_nest_cancel(d->skb, nest);
		return -1;
	}
	nla_nest_end(d->skb, nest);
	return 0;
}
