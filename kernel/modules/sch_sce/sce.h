/* SPDX-License-Identifier: GPL-2.0 */
/* What the SCE project's qdiscs have in common: options, a shaper that is one virtual clock, marks, statistics. */
#ifndef BAKEOFF_SCH_SCE_H
#define BAKEOFF_SCH_SCE_H

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <net/dropreason-qdisc.h>
#include <net/dsfield.h>
#include <net/gso.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include "cobalt.h"

/* Flows that are told apart. */
#define SCE_SLOTS	65536
/* The codepoint of low latency, and the part of all times that it gets. */
#define SCE_LOW_DSCP	4
#define SCE_LOW_PART	5

/* Attributes of TCA_OPTIONS; the numbers up to 20 are those of the SCE project's tc. */
enum {
	SCE_ATTR_RATE64 = 2,	/* bytes per second; 0: unlimited */
	SCE_ATTR_CELLS = 4,	/* see below */
	SCE_ATTR_OVERHEAD = 6,	/* bytes, which take the place of the link layer's header */
	SCE_ATTR_RTT = 7,	/* us */
	SCE_ATTR_RAW = 12,	/* the overhead is on top of the link layer's header */
	SCE_ATTR_MPU = 14,	/* bytes */
	SCE_ATTR_THRESH = 20,	/* of SCE; 0: off */
	SCE_ATTR_LIMIT = 21,	/* packets */
	SCE_ATTR_MAX = SCE_ATTR_LIMIT,
};

/* How a link carries bytes. */
enum {
	SCE_CELLS_NONE,
	SCE_CELLS_ATM,		/* cells of 53 bytes carry 48 */
	SCE_CELLS_PTM,		/* 65 bytes carry 64 */
};

/* TCA_STATS_APP. */
struct sce_xstats {
	__u64 ce_marks;
	__u64 sce_marks;
	__u64 aqm_drops;
	__u64 overlimit_drops;
	__u64 sojourn_ns;	/* of the packet that left last */
	__u32 flows;
	__u32 other;		/* cnq: tokens in the bulk queue; twin_codel_af: flows of low latency */
};

struct sce_config {
	u64 rate;
	u32 rtt_us;
	u32 thresh;
	u32 limit;		/* 0: the qdisc has none */
	u32 mpu;
	s32 overhead;
	u8 cells;
	bool replaces_header;
};

/* The beginning of every one's private data. */
struct sce_sched {
	struct sce_config config;
	struct cobalt_params params;
	struct cobalt_params low_params;
	u64 mtu_time;		/* how long a full frame takes */
	u64 next;		/* when the next packet may leave */
	struct qdisc_watchdog watchdog;
	struct sce_xstats stats;
};

/* Of a packet that stands in a queue. */
struct sce_cb {
	u64 enqueued;
	u32 seq;		/* among those that joined a bulk queue */
	u16 slot;
	u8 dsfield;
};

static inline struct sce_cb *sce_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct sce_cb));
	return (struct sce_cb *)qdisc_skb_cb(skb)->data;
}

static inline bool sce_is_low(const struct sk_buff *skb)
{
	return sce_cb(skb)->dsfield >> 2 == SCE_LOW_DSCP;
}

static inline u8 sce_dsfield(struct sk_buff *skb)
{
	switch (skb_protocol(skb, true)) {
	case htons(ETH_P_IP):
		return pskb_network_may_pull(skb, sizeof(struct iphdr)) ? ipv4_get_dsfield(ip_hdr(skb)) : 0;
	case htons(ETH_P_IPV6):
		return pskb_network_may_pull(skb, sizeof(struct ipv6hdr)) ? ipv6_get_dsfield(ipv6_hdr(skb)) : 0;
	default:
		return 0;
	}
}

static inline void sce_stamp(struct sk_buff *skb, u64 now)
{
	u8 dsfield = sce_dsfield(skb);
	u16 slot = skb_get_hash(skb);

	*sce_cb(skb) = (struct sce_cb){ .enqueued = now, .slot = slot, .dsfield = dsfield };
}

/* The bytes that a packet costs on the link. */
static inline u32 sce_link_bytes(const struct sce_config *config, const struct sk_buff *skb)
{
	s64 len = qdisc_pkt_len(skb);

	if (config->replaces_header)
		len = max_t(s64, len - skb_network_offset(skb), 0);
	len = max_t(s64, len + config->overhead, config->mpu);
	switch (config->cells) {
	case SCE_CELLS_ATM:
		return DIV_ROUND_UP((u32)len, 48) * 53;
	case SCE_CELLS_PTM:
		return (u32)len + DIV_ROUND_UP((u32)len, 64);
	default:
		return len;
	}
}

static inline u64 sce_time_for(const struct sce_config *config, u32 bytes)
{
	return config->rate ? div64_u64((u64)bytes * NSEC_PER_SEC, config->rate) : 0;
}

/* Whether a packet must wait; the watchdog then says when it need not. */
static inline bool sce_must_wait(struct Qdisc *sch, struct sce_sched *q, u64 now)
{
	if (now >= q->next)
		return false;
	qdisc_qstats_overlimit(sch);
	qdisc_watchdog_schedule_ns(&q->watchdog, q->next);
	return true;
}

/* A packet leaves: the shaper and the statistics. */
static inline struct sk_buff *sce_leave(struct Qdisc *sch, struct sce_sched *q, struct sk_buff *skb, u64 now)
{
	q->next += sce_time_for(&q->config, sce_link_bytes(&q->config, skb));
	q->stats.sojourn_ns = now - sce_cb(skb)->enqueued;
	qdisc_qlen_dec(sch);
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_bstats_update(sch, skb);
	return skb;
}

static inline int sce_joined(struct Qdisc *sch, const struct sk_buff *skb)
{
	qdisc_qlen_inc(sch);
	qdisc_qstats_backlog_inc(sch, skb);
	return NET_XMIT_SUCCESS;
}

/* The AQM drops a packet that was taken out of its queue. */
static inline void sce_drop(struct Qdisc *sch, struct sce_sched *q, struct sk_buff *skb)
{
	u32 len = qdisc_pkt_len(skb);

	q->stats.aqm_drops++;
	qdisc_qlen_dec(sch);
	qstats_backlog_sub(sch, len);
	qdisc_qstats_drop(sch);
	qdisc_tree_reduce_backlog(sch, 1, len);
	qdisc_dequeue_drop(sch, skb, QDISC_DROP_CONGESTED);
}

static inline void sce_mark(struct sce_sched *q, struct sk_buff *skb, struct cobalt_signal signal)
{
	if (signal.sce && INET_ECN_set_ect1(skb))
		q->stats.sce_marks++;
	if (signal.ce && INET_ECN_set_ce(skb))
		q->stats.ce_marks++;
}

/* The thresholds that a plain delay is above: four full frames are no queue for CE, and two none for SCE. */
static inline struct cobalt_over sce_over(const struct sce_sched *q, const struct cobalt_params *params, s64 sojourn)
{
	s64 mtu_time = q->mtu_time;

	return (struct cobalt_over){
		.ce = sojourn > max(params->target, 4 * mtu_time),
		.sce = sojourn > max(params->sce_target, 2 * mtu_time),
		.blue = sojourn > params->blue_threshold,
	};
}

/* A packet of several segments joins as the frames that it will be. */
static inline int sce_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free,
			      int (*enqueue_frame)(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free))
{
	u32 whole = qdisc_pkt_len(skb), bytes = 0;
	struct sk_buff *frame, *next;
	int frames = 0;

	if (!skb_is_gso(skb))
		return enqueue_frame(skb, sch, to_free);
	frame = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(frame))
		return qdisc_drop(skb, sch, to_free);
	skb_list_walk_safe(frame, frame, next) {
		u32 len = frame->len;

		skb_mark_not_on_list(frame);
		qdisc_skb_cb(frame)->pkt_len = len;
		qdisc_skb_cb(frame)->pkt_segs = 1;
		if (enqueue_frame(frame, sch, to_free) == NET_XMIT_SUCCESS) {
			frames++;
			bytes += len;
		}
	}
	consume_skb(skb);
	if (!frames)
		return NET_XMIT_DROP;
	/* Those above count one packet of the whole's length when this returns. */
	qdisc_tree_reduce_backlog(sch, 1 - frames, whole - bytes);
	return NET_XMIT_SUCCESS;
}

static const struct nla_policy sce_policy[SCE_ATTR_MAX + 1] = {
	[SCE_ATTR_RATE64] = { .type = NLA_U64 },
	[SCE_ATTR_CELLS] = NLA_POLICY_MAX(NLA_U32, SCE_CELLS_PTM),
	[SCE_ATTR_OVERHEAD] = NLA_POLICY_RANGE(NLA_S32, -64, 256),
	[SCE_ATTR_RTT] = NLA_POLICY_MIN(NLA_U32, 1),
	[SCE_ATTR_RAW] = { .type = NLA_U32 },
	[SCE_ATTR_MPU] = NLA_POLICY_MAX(NLA_U32, 256),
	[SCE_ATTR_THRESH] = NLA_POLICY_MAX(NLA_U32, 1024),
	[SCE_ATTR_LIMIT] = NLA_POLICY_MIN(NLA_U32, 1),
};

/* What the options do not name stays. */
static inline int sce_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct sce_sched *q = qdisc_priv(sch);
	struct nlattr *tb[SCE_ATTR_MAX + 1];
	struct sce_config config = q->config;
	int err;

	if (opt) {
		/* tc sends TCA_OPTIONS without the flag of nested attributes; all else is checked strictly. */
		err = __nla_parse(tb, SCE_ATTR_MAX, nla_data(opt), nla_len(opt), sce_policy,
				  NL_VALIDATE_STRICT & ~NL_VALIDATE_NESTED, extack);
		if (err < 0)
			return err;
		if (tb[SCE_ATTR_LIMIT] && !config.limit) {
			NL_SET_ERR_MSG_ATTR(extack, tb[SCE_ATTR_LIMIT], "this qdisc has no limit");
			return -EINVAL;
		}
		if (tb[SCE_ATTR_RATE64])
			config.rate = nla_get_u64(tb[SCE_ATTR_RATE64]);
		if (tb[SCE_ATTR_CELLS])
			config.cells = nla_get_u32(tb[SCE_ATTR_CELLS]);
		if (tb[SCE_ATTR_OVERHEAD]) {
			config.overhead = nla_get_s32(tb[SCE_ATTR_OVERHEAD]);
			config.replaces_header = true;
		}
		if (tb[SCE_ATTR_RTT])
			config.rtt_us = nla_get_u32(tb[SCE_ATTR_RTT]);
		if (tb[SCE_ATTR_RAW])
			config.replaces_header = false;
		if (tb[SCE_ATTR_MPU])
			config.mpu = nla_get_u32(tb[SCE_ATTR_MPU]);
		if (tb[SCE_ATTR_THRESH])
			config.thresh = nla_get_u32(tb[SCE_ATTR_THRESH]);
		if (tb[SCE_ATTR_LIMIT])
			config.limit = nla_get_u32(tb[SCE_ATTR_LIMIT]);
	}

	sch_tree_lock(sch);
	q->config = config;
	q->mtu_time = sce_time_for(&config, psched_mtu(qdisc_dev(sch)));
	cobalt_params_set(&q->params, config.rtt_us, config.thresh, 1);
	cobalt_params_set(&q->low_params, config.rtt_us, config.thresh, SCE_LOW_PART);
	sch_tree_unlock(sch);
	return 0;
}

/* Before anything else of init. thresh and limit are the qdisc's defaults; a limit of 0 says that it has none. */
static inline void sce_init(struct Qdisc *sch, u32 thresh, u32 limit)
{
	struct sce_sched *q = qdisc_priv(sch);

	q->config = (struct sce_config){ .rtt_us = 100 * USEC_PER_MSEC, .thresh = thresh, .limit = limit };
	qdisc_watchdog_init(&q->watchdog, sch);
	sch->flags |= TCQ_F_DEQUEUE_DROPS;
}

static inline void sce_purge(struct sk_buff_head *queue)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(queue)))
		rtnl_kfree_skbs(skb, skb);
}

static inline void sce_reset(struct sce_sched *q)
{
	qdisc_watchdog_cancel(&q->watchdog);
	q->next = 0;
}

static inline int sce_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct sce_sched *q = qdisc_priv(sch);
	const struct sce_config *config = &q->config;
	struct nlattr *opts = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!opts)
		return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, SCE_ATTR_RATE64, config->rate, 0) ||
	    nla_put_u32(skb, SCE_ATTR_CELLS, config->cells) ||
	    nla_put_s32(skb, SCE_ATTR_OVERHEAD, config->overhead) ||
	    nla_put_u32(skb, SCE_ATTR_RTT, config->rtt_us) ||
	    (!config->replaces_header && nla_put_u32(skb, SCE_ATTR_RAW, 0)) ||
	    nla_put_u32(skb, SCE_ATTR_MPU, config->mpu) ||
	    nla_put_u32(skb, SCE_ATTR_THRESH, config->thresh) ||
	    (config->limit && nla_put_u32(skb, SCE_ATTR_LIMIT, config->limit))) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}

static inline int sce_dump_stats(struct Qdisc *sch, struct gnet_dump *d, u32 flows, u32 other)
{
	const struct sce_sched *q = qdisc_priv(sch);
	struct sce_xstats stats;

	sch_tree_lock(sch);
	stats = q->stats;
	sch_tree_unlock(sch);
	stats.flows = flows;
	stats.other = other;
	return gnet_stats_copy_app(d, &stats, sizeof(stats));
}

#endif
