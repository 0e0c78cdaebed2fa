// SPDX-License-Identifier: GPL-2.0
/* cnq_cobalt: cheap nasty queueing with one COBALT for the whole bulk queue. */
#include <linux/module.h>

#include "sparse_bulk.h"

struct cnq_cobalt {
	struct sce_sched sce;
	struct sparse_bulk queues;
	struct cobalt cobalt;
};

static int cnq_cobalt_enqueue_frame(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct cnq_cobalt *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();

	sparse_bulk_wake(&q->queues, &q->sce, now);
	sce_stamp(skb, now);
	sparse_bulk_enqueue(&q->queues, skb);
	return sce_joined(sch, skb);
}

static int cnq_cobalt_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	return sce_enqueue(skb, sch, to_free, cnq_cobalt_enqueue_frame);
}

static struct sk_buff *cnq_cobalt_dequeue_bulk(struct Qdisc *sch, struct cnq_cobalt *q, u64 now)
{
	struct sk_buff *skb;

	while ((skb = sparse_bulk_pop(&q->queues))) {
		const struct sce_cb *cb = sce_cb(skb);
		struct cobalt_over over = sce_over(&q->sce, &q->sce.params, now - cb->enqueued);
		struct cobalt_signal signal;

		/* The last packet is neither judged nor dropped. */
		if (!sparse_bulk_len(&q->queues)) {
			cobalt_queue_empty(&q->cobalt, &q->sce.params, now);
			break;
		}
		signal = cobalt_dequeue(&q->cobalt, &q->sce.params, now, cb->dsfield & INET_ECN_MASK, over);
		if (!signal.drop) {
			sce_mark(&q->sce, skb, signal);
			break;
		}
		sce_drop(sch, &q->sce, skb);
	}
	return skb;
}

static struct sk_buff *cnq_cobalt_dequeue(struct Qdisc *sch)
{
	struct cnq_cobalt *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	struct sk_buff *skb;

	if (!sparse_bulk_len(&q->queues) || sce_must_wait(sch, &q->sce, now))
		return NULL;
	/* Sparse packets are not judged. */
	skb = __skb_dequeue(&q->queues.sparse);
	if (!skb)
		skb = cnq_cobalt_dequeue_bulk(sch, q, now);
	return skb ? sce_leave(sch, &q->sce, skb, now) : NULL;
}

static void cnq_cobalt_reset(struct Qdisc *sch)
{
	struct cnq_cobalt *q = qdisc_priv(sch);

	sce_reset(&q->sce);
	sparse_bulk_reset(&q->queues);
	cobalt_init(&q->cobalt);
}

static int cnq_cobalt_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct cnq_cobalt *q = qdisc_priv(sch);
	int err;

	sce_init(sch, 0, 0);
	err = sparse_bulk_init(&q->queues);
	if (err)
		return err;
	cnq_cobalt_reset(sch);
	return sce_change(sch, opt, extack);
}

static void cnq_cobalt_destroy(struct Qdisc *sch)
{
	struct cnq_cobalt *q = qdisc_priv(sch);

	sce_reset(&q->sce);
	sparse_bulk_destroy(&q->queues);
}

static int cnq_cobalt_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct cnq_cobalt *q = qdisc_priv(sch);

	return sce_dump_stats(sch, d, READ_ONCE(q->queues.active), READ_ONCE(q->queues.nr_tokens));
}

static struct Qdisc_ops cnq_cobalt_ops __read_mostly = {
	.id = "cnq_cobalt",
	.priv_size = sizeof(struct cnq_cobalt),
	.enqueue = cnq_cobalt_enqueue,
	.dequeue = cnq_cobalt_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = cnq_cobalt_init,
	.reset = cnq_cobalt_reset,
	.destroy = cnq_cobalt_destroy,
	.change = sce_change,
	.dump = sce_dump,
	.dump_stats = cnq_cobalt_dump_stats,
	.owner = THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("cnq_cobalt");

static int __init cnq_cobalt_register(void)
{
	cobalt_fill_roots();
	return register_qdisc(&cnq_cobalt_ops);
}

static void __exit cnq_cobalt_unregister(void)
{
	unregister_qdisc(&cnq_cobalt_ops);
}

module_init(cnq_cobalt_register);
module_exit(cnq_cobalt_unregister);

MODULE_AUTHOR("The bakeoff authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Cheap nasty queueing with one COBALT, with marks of SCE");
MODULE_VERSION("1.0");
