// SPDX-License-Identifier: GPL-2.0
/*
 * cnq_codel_af: cheap nasty queueing with approximate fairness. Each flow has a COBALT of its own, which judges the
 * flow's share of the queue's delay times the number of flows.
 */
#include <linux/module.h>

#include "sparse_bulk.h"

struct cnq_codel_af {
	struct sce_sched sce;
	struct sparse_bulk queues;
	struct cobalt *cobalts;		/* by flow */
	u16 sweep;			/* the next flow that is looked at for idleness */
};

static int cnq_codel_af_enqueue_frame(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct cnq_codel_af *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();

	sparse_bulk_wake(&q->queues, &q->sce, now);
	sce_stamp(skb, now);
	sparse_bulk_enqueue(&q->queues, skb);
	return sce_joined(sch, skb);
}

static int cnq_codel_af_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	return sce_enqueue(skb, sch, to_free, cnq_codel_af_enqueue_frame);
}

static struct sk_buff *cnq_codel_af_dequeue(struct Qdisc *sch)
{
	struct cnq_codel_af *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	struct sk_buff *skb;

	if (!sparse_bulk_len(&q->queues) || sce_must_wait(sch, &q->sce, now))
		return NULL;
	if (!q->queues.counts[q->sweep])
		cobalt_queue_empty(&q->cobalts[q->sweep], &q->sce.params, now);
	q->sweep++;

	skb = __skb_dequeue(&q->queues.sparse);
	if (skb) {
		cobalt_queue_empty(&q->cobalts[sce_cb(skb)->slot], &q->sce.params, now);
	} else {
		skb = sparse_bulk_dequeue(sch, &q->queues, q->cobalts, &q->sce.params, now);
		if (!skb)
			return NULL;
	}
	return sce_leave(sch, &q->sce, skb, now);
}

static void cnq_codel_af_reset(struct Qdisc *sch)
{
	struct cnq_codel_af *q = qdisc_priv(sch);
	int slot;

	sce_reset(&q->sce);
	sparse_bulk_reset(&q->queues);
	for (slot = 0; slot < SCE_SLOTS; slot++)
		cobalt_init(&q->cobalts[slot]);
	q->sweep = 0;
}

static int cnq_codel_af_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct cnq_codel_af *q = qdisc_priv(sch);
	int err;

	sce_init(sch, 0, 0);
	err = sparse_bulk_init(&q->queues);
	if (err)
		return err;
	q->cobalts = kvcalloc(SCE_SLOTS, sizeof(*q->cobalts), GFP_KERNEL);
	if (!q->cobalts)
		return -ENOMEM;
	cnq_codel_af_reset(sch);
	return sce_change(sch, opt, extack);
}

static void cnq_codel_af_destroy(struct Qdisc *sch)
{
	struct cnq_codel_af *q = qdisc_priv(sch);

	sce_reset(&q->sce);
	sparse_bulk_destroy(&q->queues);
	kvfree(q->cobalts);
}

static int cnq_codel_af_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct cnq_codel_af *q = qdisc_priv(sch);

	return sce_dump_stats(sch, d, READ_ONCE(q->queues.active), READ_ONCE(q->queues.nr_tokens));
}

static struct Qdisc_ops cnq_codel_af_ops __read_mostly = {
	.id = "cnq_codel_af",
	.priv_size = sizeof(struct cnq_codel_af),
	.enqueue = cnq_codel_af_enqueue,
	.dequeue = cnq_codel_af_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = cnq_codel_af_init,
	.reset = cnq_codel_af_reset,
	.destroy = cnq_codel_af_destroy,
	.change = sce_change,
	.dump = sce_dump,
	.dump_stats = cnq_codel_af_dump_stats,
	.owner = THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("cnq_codel_af");

static int __init cnq_codel_af_register(void)
{
	cobalt_fill_roots();
	return register_qdisc(&cnq_codel_af_ops);
}

static void __exit cnq_codel_af_unregister(void)
{
	unregister_qdisc(&cnq_codel_af_ops);
}

module_init(cnq_codel_af_register);
module_exit(cnq_codel_af_unregister);

MODULE_AUTHOR("The bakeoff authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Cheap nasty queueing with approximate fairness, with marks of SCE");
MODULE_VERSION("1.0");
