// SPDX-License-Identifier: GPL-2.0
/*
 * sch_cake_sce: CAKE with SCE's marks, a qdisc of the kind cake_sce. It is written from this repository's model of CAKE
 * (crates/sim/src/qdisc/cake), not from Linux's sch_cake.
 */
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <net/gso.h>

#include "cake.h"

static u32 id_of(const struct cake *q, const struct cake_tin *tin, const struct cake_queue *queue)
{
	return (tin - q->tins) * CAKE_QUEUES + (queue - tin->queues);
}

/* Of empty packets, too, a queue of many is longer than one of none. */
static u32 weight(const struct sk_buff *skb)
{
	return max(qdisc_pkt_len(skb), 1U);
}

static void append(struct Qdisc *sch, struct cake_tin *tin, struct cake_queue *queue, struct sk_buff *skb, s64 now)
{
	struct cake *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb);

	cake_skb(skb)->enqueued = now;
	cake_skb(skb)->adjusted_len = cake_adjusted_len(q, skb);
	skb->next = NULL;
	if (queue->head)
		queue->tail->next = skb;
	else
		queue->head = skb;
	queue->tail = skb;
	qdisc_qlen_inc(sch);
	qstats_backlog_add(sch, len);
	q->memory += skb->truesize;
	cake_overflow_grow(q->overflow, id_of(q, tin, queue), weight(skb));
	tin->backlog += len;
	tin->stats.packets++;
	tin->stats.bytes += len;
	tin->stats.max_len = max(tin->stats.max_len, len);
}

/* Takes a packet that has left its queue out of all accounts. */
static void account_out(struct Qdisc *sch, struct cake_tin *tin, struct cake_queue *queue, struct sk_buff *skb)
{
	struct cake *q = qdisc_priv(sch);

	qdisc_qlen_dec(sch);
	qdisc_qstats_backlog_dec(sch, skb);
	q->memory -= skb->truesize;
	tin->backlog -= qdisc_pkt_len(skb);
	cake_overflow_shrink(q->overflow, id_of(q, tin, queue), weight(skb));
}

static struct sk_buff *pop(struct Qdisc *sch, struct cake_tin *tin, struct cake_queue *queue)
{
	struct sk_buff *skb = queue->head;

	if (!skb)
		return NULL;
	queue->head = skb->next;
	skb_mark_not_on_list(skb);
	account_out(sch, tin, queue, skb);
	return skb;
}

/* Drops the head of the longest queue; which queue that was, or NULL. */
static struct cake_queue *drop_from_longest(struct Qdisc *sch, s64 now, struct sk_buff **to_free)
{
	struct cake *q = qdisc_priv(sch);
	u32 id = cake_overflow_longest(q->overflow);
	struct cake_tin *tin = &q->tins[id / CAKE_QUEUES];
	struct cake_queue *queue = &tin->queues[id % CAKE_QUEUES];
	struct sk_buff *skb = pop(sch, tin, queue);

	if (!skb)
		return NULL;
	if (cobalt_queue_full(&queue->cobalt, &tin->params, now))
		tin->stats.unresponsive_flows++;
	tin->stats.drops++;
	if (q->config.ingress)
		cake_charge(q, tin, cake_skb(skb)->adjusted_len, now, true);
	qdisc_drop_reason(skb, sch, to_free, QDISC_DROP_OVERLIMIT);
	return queue;
}

/* The packet that has just joined the queue may make an older acknowledgement superfluous; the older one's length. */
static u32 filter_acks(struct Qdisc *sch, struct cake_tin *tin, struct cake_queue *queue, s64 now,
		       struct sk_buff **to_free)
{
	struct cake *q = qdisc_priv(sch);
	struct sk_buff *ack = cake_ack_filter(queue, q->config.ack_filter);

	if (!ack)
		return 0;
	account_out(sch, tin, queue, ack);
	tin->stats.ack_drops++;
	if (q->config.ingress)
		cake_charge(q, tin, cake_skb(ack)->adjusted_len, now, true);
	qdisc_drop_reason(ack, sch, to_free, QDISC_DROP_CONGESTED);
	return qdisc_pkt_len(ack);
}

/* Clocks that stood still run on from now. A packet at which a parent has had a look is counted, but stands here no more. */
static void wake(struct cake *q, struct cake_tin *tin, s64 now)
{
	if (tin->backlog)
		return;
	tin->time_next = max(tin->time_next, now);
	if (!q->memory && q->time_next < now) {
		q->time_next = now;
		q->failsafe_next = now;
	}
}

static void estimate_rate(struct Qdisc *sch, s64 now, u32 bytes)
{
	struct cake *q = qdisc_priv(sch);

	if (!q->config.autorate) {
		cake_autorate_pass(&q->autorate, now);
	} else if (cake_autorate_arrived(&q->autorate, now, bytes)) {
		q->config.rate = q->autorate.peak * 15 / 16;
		cake_tins_configure(q, psched_mtu(qdisc_dev(sch)));
	}
}

static int cake_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	const u32 len = qdisc_pkt_len(skb), qlen = sch->q.qlen, backlog = sch->qstats.backlog;
	struct cake *q = qdisc_priv(sch);
	s64 now = ktime_get_ns();
	struct cake_tin *tin = &q->tins[cake_tin_of(q, sch->handle, skb)];
	struct cake_queue *queue = cake_classify(tin, skb, q->config.isolation);
	bool own_was_dropped = false;
	u32 filtered = 0;
	int more_packets, more_bytes;

	if (q->config.split_gso && skb_is_gso(skb)) {
		netdev_features_t features = netif_skb_features(skb) & ~NETIF_F_GSO_MASK;
		struct sk_buff *segments = skb_gso_segment(skb, features), *segment, *next;

		if (IS_ERR_OR_NULL(segments))
			return qdisc_drop(skb, sch, to_free);
		wake(q, tin, now);
		skb_list_walk_safe(segments, segment, next) {
			skb_mark_not_on_list(segment);
			qdisc_skb_cb(segment)->pkt_len = segment->len;
			qdisc_skb_cb(segment)->pkt_segs = 1;
			append(sch, tin, queue, segment, now);
		}
		consume_skb(skb);
	} else {
		wake(q, tin, now);
		append(sch, tin, queue, skb, now);
		filtered = filter_acks(sch, tin, queue, now, to_free);
	}
	estimate_rate(sch, now, len - min(len, filtered));
	cake_queue_arrived(tin, queue, q->config.isolation);
	q->memory_max = max(q->memory_max, q->memory);
	while (q->memory > q->memory_limit) {
		struct cake_queue *longest = drop_from_longest(sch, now, to_free);

		if (!longest)
			break;
		own_was_dropped |= longest == queue;
	}

	/*
	 * A parent counts one packet of this length if told of success, and nothing if told of congestion. It is told
	 * what is not so.
	 */
	more_packets = sch->q.qlen - qlen;
	more_bytes = sch->qstats.backlog - backlog;
	if (own_was_dropped && (qlen || !sch->q.qlen)) {
		if (more_packets || more_bytes)
			qdisc_tree_reduce_backlog(sch, -more_packets, -more_bytes);
		return NET_XMIT_CN;
	}
	if (more_packets != 1 || more_bytes != len)
		qdisc_tree_reduce_backlog(sch, 1 - more_packets, len - more_bytes);
	return NET_XMIT_SUCCESS;
}

/* By deficit. */
static struct cake_tin *choose_unlimited(struct cake *q)
{
	bool any = false;
	u8 i;

	for (i = 0; i < q->tins_used; i++)
		any |= cake_tin_active(&q->tins[i]);
	while (any) {
		struct cake_tin *tin = &q->tins[q->turn];

		if (tin->deficit >= 0 && cake_tin_active(tin))
			return tin;
		if (tin->deficit <= 0)
			tin->deficit += tin->quantum;
		q->turn = (q->turn + 1) % q->tins_used;
	}
	return NULL;
}

/* The tin to serve. By its clock where the bandwidth is limited: of those that are due the last, else the earliest. */
static struct cake_tin *choose_tin(struct cake *q, s64 now)
{
	struct cake_tin *best = NULL;
	s64 wait, best_wait = S64_MAX;
	u8 i;

	if (!q->pace.ns)
		return choose_unlimited(q);
	for (i = 0; i < q->tins_used; i++) {
		if (!cake_tin_active(&q->tins[i]))
			continue;
		wait = q->tins[i].time_next - now;
		if (wait <= 0 || wait <= best_wait) {
			best = &q->tins[i];
			best_wait = wait;
		}
	}
	return best;
}

static void pay(struct cake *q, struct cake_tin *tin, struct cake_queue *queue, u32 bytes, s64 now, bool dropped)
{
	cake_charge(q, tin, bytes, now, dropped);
	queue->deficit -= bytes;
	/* Elsewhere nothing would ever pay it back. */
	if (!q->pace.ns)
		tin->deficit -= bytes;
}

/* What COBALT says of the packet; true if the packet stays. The last of a queue is not dropped, but may be marked. */
static bool passes(struct cake *q, struct cake_tin *tin, struct cake_queue *queue, struct sk_buff *skb, s64 now,
		   enum qdisc_drop_reason *reason)
{
	enum cobalt_verdict verdict;
	bool is_last = !queue->head;

	verdict = cobalt_dequeue(&queue->cobalt, &tin->params, now, skb, q->config.ingress ? tin->bulk_flows : 0);
	switch (verdict) {
	case COBALT_DROP:
		*reason = QDISC_DROP_CONGESTED;
		if (!is_last)
			return false;
		break;
	case COBALT_BLUE_DROP:
	case COBALT_BLUE_DROP_MARKED:
		*reason = QDISC_DROP_FLOOD_PROTECTION;
		if (!is_last)
			return false;
		break;
	default:
		break;
	}
	if (verdict == COBALT_MARKED || verdict == COBALT_BLUE_DROP_MARKED)
		tin->stats.marks++;
	else
		tin->stats.sce_marks += cake_sce_mark(q->config.sce_thresh, tin->params.target,
						      now - cake_skb(skb)->enqueued, skb);
	return true;
}

/* Serves the tin's queues until a packet leaves or a queue turns out to be empty. */
static struct sk_buff *serve(struct Qdisc *sch, struct cake_tin *tin, s64 now, bool *first)
{
	struct cake *q = qdisc_priv(sch);
	u8 isolation = q->config.isolation;
	enum qdisc_drop_reason reason;
	struct cake_queue *queue = NULL;
	struct sk_buff *skb;

	for (;;) {
		if (!queue) {
			queue = cake_next_queue(tin, *first);
			*first = false;
			if (WARN_ON_ONCE(!queue))
				return NULL;
			if (queue->deficit <= 0) {
				cake_queue_rotate(tin, queue, isolation);
				queue = NULL;
				continue;
			}
		}
		skb = pop(sch, tin, queue);
		if (!skb) {
			cake_queue_emptied(tin, queue, isolation, now);
			return NULL;
		}
		if (passes(q, tin, queue, skb, now, &reason))
			break;
		tin->stats.drops++;
		qdisc_qstats_drop(sch);
		qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(skb));
		if (q->config.ingress) {
			pay(q, tin, queue, cake_skb(skb)->adjusted_len, now, true);
			queue = NULL;
		}
		qdisc_dequeue_drop(sch, skb, reason);
	}
	cake_note_delay(&tin->stats, now - cake_skb(skb)->enqueued);
	qdisc_bstats_update(sch, skb);
	pay(q, tin, queue, cake_skb(skb)->adjusted_len, now, false);
	cake_overflow_sent(q->overflow);
	return skb;
}

static struct sk_buff *cake_dequeue(struct Qdisc *sch)
{
	struct cake *q = qdisc_priv(sch);
	s64 now = ktime_get_ns();
	struct cake_tin *tin;
	struct sk_buff *skb;
	bool first = true;

	while (q->memory) {
		if (q->time_next > now && q->failsafe_next > now) {
			qdisc_qstats_overlimit(sch);
			qdisc_watchdog_schedule_ns(&q->watchdog, min(q->time_next, q->failsafe_next));
			return NULL;
		}
		tin = choose_tin(q, now);
		if (!tin)
			return NULL;
		skb = serve(sch, tin, now, &first);
		if (skb)
			return skb;
	}
	return NULL;
}

/* Empties the tins from this one on; how many packets and bytes stood in them. */
static void drain(struct Qdisc *sch, u8 from, u32 *packets, u32 *bytes)
{
	struct cake *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u32 i;

	*packets = 0;
	*bytes = 0;
	for (; from < q->tins_used; from++) {
		struct cake_tin *tin = &q->tins[from];

		for (i = 0; i < CAKE_QUEUES; i++) {
			while ((skb = pop(sch, tin, &tin->queues[i]))) {
				*packets += 1;
				*bytes += qdisc_pkt_len(skb);
				rtnl_kfree_skbs(skb, skb);
			}
		}
		cake_tin_clear(tin);
	}
}

static void cake_reset(struct Qdisc *sch)
{
	struct cake *q = qdisc_priv(sch);
	u32 packets, bytes;

	qdisc_watchdog_cancel(&q->watchdog);
	drain(sch, 0, &packets, &bytes);
	q->time_next = 0;
	q->failsafe_next = 0;
	q->turn = 0;
}

static int cake_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct cake *q = qdisc_priv(sch);
	struct cake_config before;
	u32 packets, bytes;
	u8 used, i;
	int err;

	sch_tree_lock(sch);
	before = q->config;
	err = cake_config_take(&q->config, opt, extack);
	if (err)
		goto out;
	if (q->config.overhead != before.overhead || q->config.mpu != before.mpu || q->config.cells != before.cells ||
	    q->config.replaces_header != before.replaces_header)
		cake_lengths_forget(&q->lengths);
	used = cake_tins_configure(q, psched_mtu(qdisc_dev(sch)));
	drain(sch, used, &packets, &bytes);
	for (i = used; i < q->tins_used; i++)
		memset(&q->tins[i].stats, 0, sizeof(q->tins[i].stats));
	q->tins_used = used;
	q->turn = 0;
	if (packets) {
		__qdisc_qstats_drop(sch, packets);
		qdisc_tree_reduce_backlog(sch, packets, bytes);
	}
out:
	sch_tree_unlock(sch);
	return err;
}

static int cake_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct cake *q = qdisc_priv(sch);
	int err;
	u8 i;

	qdisc_watchdog_init(&q->watchdog, sch);
	q->config = cake_config_default;
	err = cake_config_take(&q->config, opt, extack);
	if (err)
		return err;
	q->tins = kvcalloc(TC_CAKE_MAX_TINS, sizeof(*q->tins), GFP_KERNEL);
	q->overflow = kvzalloc_obj(*q->overflow, GFP_KERNEL);
	if (!q->tins || !q->overflow)
		return -ENOMEM;
	for (i = 0; i < TC_CAKE_MAX_TINS; i++)
		cake_tin_clear(&q->tins[i]);
	cake_overflow_init(q->overflow);
	cake_lengths_forget(&q->lengths);
	q->autorate.peak = q->config.rate;
	q->tins_used = cake_tins_configure(q, psched_mtu(qdisc_dev(sch)));
	return 0;
}

/* Also called after an init that failed. */
static void cake_destroy(struct Qdisc *sch)
{
	struct cake *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	kvfree(q->tins);
	kvfree(q->overflow);
}

static int cake_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct cake *q = qdisc_priv(sch);
	int err;

	sch_tree_lock(sch);
	err = cake_config_dump(&q->config, skb);
	sch_tree_unlock(sch);
	return err;
}

static int cake_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	int err;

	sch_tree_lock(sch);
	err = cake_stats_dump(qdisc_priv(sch), d);
	sch_tree_unlock(sch);
	return err;
}

static struct Qdisc_ops cake_sce_ops __read_mostly = {
	.id		= "cake_sce",
	.priv_size	= sizeof(struct cake),
	.static_flags	= TCQ_F_DEQUEUE_DROPS,
	.enqueue	= cake_enqueue,
	.dequeue	= cake_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= cake_init,
	.reset		= cake_reset,
	.destroy	= cake_destroy,
	.change		= cake_change,
	.dump		= cake_dump,
	.dump_stats	= cake_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("cake_sce");

static int __init cake_sce_register(void)
{
	return register_qdisc(&cake_sce_ops);
}

static void __exit cake_sce_unregister(void)
{
	unregister_qdisc(&cake_sce_ops);
}

module_init(cake_sce_register);
module_exit(cake_sce_unregister);

MODULE_AUTHOR("The bakeoff authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("CAKE with the marks of SCE");
MODULE_VERSION("1.0");
