// SPDX-License-Identifier: GPL-2.0
/*
 * lfq_cobalt: lightweight fair queueing. A packet of a flow without backlog or debt goes to a sparse queue with strict
 * priority. The others stand in one bulk queue, which is scanned from head to tail: a flow that has sent more than a
 * packet's worth in this scan is skipped until the next one. Each flow has a COBALT of its own.
 */
#include <linux/module.h>

#include "sce.h"

/* What a flow gets per scan, in bytes. */
#define LFQ_QUANTUM	1514

struct lfq_flow {
	struct cobalt cobalt;
	s32 deficit;
	u32 packets;		/* in both queues */
	bool skip;		/* not served again in this scan */
	bool touched;		/* among those that are looked at when the scan ends */
};

struct lfq_cobalt {
	struct sce_sched sce;
	struct sk_buff_head sparse;
	struct sk_buff_head passed;	/* the bulk queue: what this scan has passed, and what is before it */
	struct sk_buff_head ahead;
	struct lfq_flow *flows;
	u16 *touched;
	u32 nr_touched;
};

static u32 lfq_len(const struct lfq_cobalt *q)
{
	return skb_queue_len(&q->sparse) + skb_queue_len(&q->passed) + skb_queue_len(&q->ahead);
}

static const struct cobalt_params *lfq_params(const struct lfq_cobalt *q, const struct sk_buff *skb)
{
	return sce_is_low(skb) ? &q->sce.low_params : &q->sce.params;
}

/* Back to the head: a flow that was not skipped and is empty loses its deficit. */
static void lfq_end_scan(struct lfq_cobalt *q)
{
	while (q->nr_touched) {
		struct lfq_flow *flow = &q->flows[q->touched[--q->nr_touched]];

		if (!flow->skip && !flow->packets)
			flow->deficit = 0;
		flow->skip = false;
		flow->touched = false;
	}
	skb_queue_splice_tail_init(&q->passed, &q->ahead);
}

/* The next packet of the scan. */
static struct sk_buff *lfq_scan(struct lfq_cobalt *q)
{
	for (;;) {
		struct sk_buff *skb = __skb_dequeue(&q->ahead);
		struct lfq_flow *flow;

		if (!skb) {
			if (skb_queue_empty(&q->passed))
				return NULL;
			lfq_end_scan(q);
			continue;
		}
		flow = &q->flows[sce_cb(skb)->slot];
		if (!flow->touched) {
			flow->touched = true;
			q->touched[q->nr_touched++] = sce_cb(skb)->slot;
		}
		if (flow->skip) {
			__skb_queue_tail(&q->passed, skb);
			continue;
		}
		flow->deficit -= qdisc_pkt_len(skb);
		if (flow->deficit < 0) {
			flow->skip = true;
			flow->deficit += LFQ_QUANTUM;
		}
		return skb;
	}
}

static struct sk_buff *lfq_dequeue_bulk(struct Qdisc *sch, struct lfq_cobalt *q, u64 now)
{
	struct sk_buff *skb;

	while ((skb = lfq_scan(q))) {
		const struct sce_cb *cb = sce_cb(skb);
		const struct cobalt_params *params = lfq_params(q, skb);
		struct lfq_flow *flow = &q->flows[cb->slot];
		struct cobalt_over over = sce_over(&q->sce, params, now - cb->enqueued);
		struct cobalt_signal signal;

		flow->packets--;
		signal = cobalt_dequeue(&flow->cobalt, params, now, cb->dsfield & INET_ECN_MASK, over);
		if (!signal.drop || !flow->packets) {
			sce_mark(&q->sce, skb, signal);
			break;
		}
		sce_drop(sch, &q->sce, skb);
	}
	return skb;
}

static int lfq_cobalt_enqueue_frame(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct lfq_cobalt *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	struct lfq_flow *flow;

	if (!lfq_len(q)) {
		q->sce.next = max(q->sce.next, now);
		lfq_end_scan(q);
	}
	sce_stamp(skb, now);
	flow = &q->flows[sce_cb(skb)->slot];
	__skb_queue_tail(!flow->packets && flow->deficit >= 0 && !flow->skip ? &q->sparse : &q->ahead, skb);
	flow->packets++;
	return sce_joined(sch, skb);
}

static int lfq_cobalt_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	return sce_enqueue(skb, sch, to_free, lfq_cobalt_enqueue_frame);
}

static struct sk_buff *lfq_cobalt_dequeue(struct Qdisc *sch)
{
	struct lfq_cobalt *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	struct sk_buff *skb;

	if (!lfq_len(q) || sce_must_wait(sch, &q->sce, now))
		return NULL;
	skb = __skb_dequeue(&q->sparse);
	if (skb) {
		struct lfq_flow *flow = &q->flows[sce_cb(skb)->slot];

		flow->packets--;
		cobalt_queue_empty(&flow->cobalt, lfq_params(q, skb), now);
	} else {
		skb = lfq_dequeue_bulk(sch, q, now);
		if (!skb)
			return NULL;
	}
	return sce_leave(sch, &q->sce, skb, now);
}

static void lfq_cobalt_reset(struct Qdisc *sch)
{
	struct lfq_cobalt *q = qdisc_priv(sch);
	int slot;

	sce_reset(&q->sce);
	sce_purge(&q->sparse);
	sce_purge(&q->passed);
	sce_purge(&q->ahead);
	memset(q->flows, 0, SCE_SLOTS * sizeof(*q->flows));
	for (slot = 0; slot < SCE_SLOTS; slot++)
		cobalt_init(&q->flows[slot].cobalt);
	q->nr_touched = 0;
}

static int lfq_cobalt_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct lfq_cobalt *q = qdisc_priv(sch);

	sce_init(sch, 0, 0);
	__skb_queue_head_init(&q->sparse);
	__skb_queue_head_init(&q->passed);
	__skb_queue_head_init(&q->ahead);
	q->flows = kvcalloc(SCE_SLOTS, sizeof(*q->flows), GFP_KERNEL);
	q->touched = kvcalloc(SCE_SLOTS, sizeof(*q->touched), GFP_KERNEL);
	if (!q->flows || !q->touched)
		return -ENOMEM;
	lfq_cobalt_reset(sch);
	return sce_change(sch, opt, extack);
}

static void lfq_cobalt_destroy(struct Qdisc *sch)
{
	struct lfq_cobalt *q = qdisc_priv(sch);

	sce_reset(&q->sce);
	kvfree(q->flows);
	kvfree(q->touched);
}

static int lfq_cobalt_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	return sce_dump_stats(sch, d, 0, 0);
}

static struct Qdisc_ops lfq_cobalt_ops __read_mostly = {
	.id = "lfq_cobalt",
	.priv_size = sizeof(struct lfq_cobalt),
	.enqueue = lfq_cobalt_enqueue,
	.dequeue = lfq_cobalt_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = lfq_cobalt_init,
	.reset = lfq_cobalt_reset,
	.destroy = lfq_cobalt_destroy,
	.change = sce_change,
	.dump = sce_dump,
	.dump_stats = lfq_cobalt_dump_stats,
	.owner = THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("lfq_cobalt");

static int __init lfq_cobalt_register(void)
{
	cobalt_fill_roots();
	return register_qdisc(&lfq_cobalt_ops);
}

static void __exit lfq_cobalt_unregister(void)
{
	unregister_qdisc(&lfq_cobalt_ops);
}

module_init(lfq_cobalt_register);
module_exit(lfq_cobalt_unregister);

MODULE_AUTHOR("The bakeoff authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Lightweight fair queueing with COBALT, with marks of SCE");
MODULE_VERSION("1.0");
