// SPDX-License-Identifier: GPL-2.0
/*
 * twin_codel_af: two classes of cheap nasty queueing with approximate fairness, normal and low latency. Packets of the
 * low-latency codepoint go to the second class, whose times are a fifth of the others'. The classes share the link by
 * their numbers of flows. A flow has one COBALT, whatever its class.
 */
#include <linux/module.h>

#include "sparse_bulk.h"

#define TWIN_LIMIT	10240
/* SCE is on by default. */
#define TWIN_THRESH	4

enum { TWIN_NORMAL, TWIN_LOW, TWIN_CLASSES };

struct twin_class {
	struct sparse_bulk queues;
	u64 debt;		/* parts that it has had more than the other class */
};

struct twin_codel_af {
	struct sce_sched sce;
	struct twin_class classes[TWIN_CLASSES];
	struct cobalt *cobalts;		/* by flow */
	u16 sweep;			/* the next flow that is looked at for idleness */
};

static u32 twin_len(const struct twin_codel_af *q)
{
	return sparse_bulk_len(&q->classes[TWIN_NORMAL].queues) + sparse_bulk_len(&q->classes[TWIN_LOW].queues);
}

/* The class to serve: low latency while it owes no more than the other. */
static int twin_choose(const struct twin_codel_af *q)
{
	const struct twin_class *normal = &q->classes[TWIN_NORMAL], *low = &q->classes[TWIN_LOW];

	if (!sparse_bulk_len(&low->queues))
		return TWIN_NORMAL;
	if (!sparse_bulk_len(&normal->queues) || low->debt <= normal->debt)
		return TWIN_LOW;
	return TWIN_NORMAL;
}

static int twin_codel_af_enqueue_frame(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct twin_codel_af *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();

	if (twin_len(q) >= q->sce.config.limit) {
		q->sce.stats.overlimit_drops++;
		return qdisc_drop_reason(skb, sch, to_free, QDISC_DROP_OVERLIMIT);
	}
	if (!twin_len(q) && q->sce.next <= now) {
		q->sce.next = now;
		sparse_bulk_skip_tokens(&q->classes[TWIN_NORMAL].queues);
		sparse_bulk_skip_tokens(&q->classes[TWIN_LOW].queues);
	}
	sce_stamp(skb, now);
	sparse_bulk_enqueue(&q->classes[sce_is_low(skb) ? TWIN_LOW : TWIN_NORMAL].queues, skb);
	return sce_joined(sch, skb);
}

static int twin_codel_af_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	return sce_enqueue(skb, sch, to_free, twin_codel_af_enqueue_frame);
}

static struct sk_buff *twin_codel_af_dequeue(struct Qdisc *sch)
{
	struct twin_codel_af *q = qdisc_priv(sch);
	struct twin_class *normal = &q->classes[TWIN_NORMAL], *low = &q->classes[TWIN_LOW];
	const struct cobalt_params *params;
	struct twin_class *class, *other;
	u64 now = ktime_get_ns(), least;
	struct sk_buff *skb;
	u32 cost;

	if (!twin_len(q) || sce_must_wait(sch, &q->sce, now))
		return NULL;
	if (!normal->queues.counts[q->sweep] && !low->queues.counts[q->sweep])
		cobalt_queue_empty(&q->cobalts[q->sweep], &q->sce.params, now);
	q->sweep++;

	if (twin_choose(q) == TWIN_LOW) {
		class = low;
		other = normal;
		params = &q->sce.low_params;
	} else {
		class = normal;
		other = low;
		params = &q->sce.params;
	}
	/* A packet costs its class as many parts as the other class has flows. */
	cost = other->queues.active;
	skb = __skb_dequeue(&class->queues.sparse);
	if (skb) {
		cobalt_queue_empty(&q->cobalts[sce_cb(skb)->slot], params, now);
	} else {
		skb = sparse_bulk_dequeue(sch, &class->queues, q->cobalts, params, now);
		if (!skb)
			return NULL;
	}
	class->debt += cost;
	least = min(normal->debt, low->debt);
	normal->debt -= least;
	low->debt -= least;
	return sce_leave(sch, &q->sce, skb, now);
}

static void twin_codel_af_reset(struct Qdisc *sch)
{
	struct twin_codel_af *q = qdisc_priv(sch);
	int i;

	sce_reset(&q->sce);
	for (i = 0; i < TWIN_CLASSES; i++) {
		sparse_bulk_reset(&q->classes[i].queues);
		q->classes[i].debt = 0;
	}
	for (i = 0; i < SCE_SLOTS; i++)
		cobalt_init(&q->cobalts[i]);
	q->sweep = 0;
}

static int twin_codel_af_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct twin_codel_af *q = qdisc_priv(sch);
	int i, err;

	sce_init(sch, TWIN_THRESH, TWIN_LIMIT);
	for (i = 0; i < TWIN_CLASSES; i++) {
		err = sparse_bulk_init(&q->classes[i].queues);
		if (err)
			return err;
	}
	q->cobalts = kvcalloc(SCE_SLOTS, sizeof(*q->cobalts), GFP_KERNEL);
	if (!q->cobalts)
		return -ENOMEM;
	twin_codel_af_reset(sch);
	return sce_change(sch, opt, extack);
}

static void twin_codel_af_destroy(struct Qdisc *sch)
{
	struct twin_codel_af *q = qdisc_priv(sch);
	int i;

	sce_reset(&q->sce);
	for (i = 0; i < TWIN_CLASSES; i++)
		sparse_bulk_destroy(&q->classes[i].queues);
	kvfree(q->cobalts);
}

static int twin_codel_af_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct twin_codel_af *q = qdisc_priv(sch);

	return sce_dump_stats(sch, d, READ_ONCE(q->classes[TWIN_NORMAL].queues.active),
			      READ_ONCE(q->classes[TWIN_LOW].queues.active));
}

static struct Qdisc_ops twin_codel_af_ops __read_mostly = {
	.id = "twin_codel_af",
	.priv_size = sizeof(struct twin_codel_af),
	.enqueue = twin_codel_af_enqueue,
	.dequeue = twin_codel_af_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = twin_codel_af_init,
	.reset = twin_codel_af_reset,
	.destroy = twin_codel_af_destroy,
	.change = sce_change,
	.dump = sce_dump,
	.dump_stats = twin_codel_af_dump_stats,
	.owner = THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("twin_codel_af");

static int __init twin_codel_af_register(void)
{
	cobalt_fill_roots();
	return register_qdisc(&twin_codel_af_ops);
}

static void __exit twin_codel_af_unregister(void)
{
	unregister_qdisc(&twin_codel_af_ops);
}

module_init(twin_codel_af_register);
module_exit(twin_codel_af_unregister);

MODULE_AUTHOR("The bakeoff authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Two classes of cheap nasty queueing with approximate fairness, with marks of SCE");
MODULE_VERSION("1.0");
