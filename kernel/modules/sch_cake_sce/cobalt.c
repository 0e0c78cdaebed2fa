// SPDX-License-Identifier: GPL-2.0
/*
 * COBALT: CoDel's schedule with a count that steps back in time, and BLUE for those who do not listen; and the ramp on
 * which SCE marks below it.
 */
#include <linux/random.h>
#include <net/inet_ecn.h>

#include "cake.h"

/* BLUE's step up, 1/256, and down, 1/4096. */
#define P_INC	BIT(24)
#define P_DEC	BIT(20)

/* 2^32 / sqrt(count), rounded; those of 0 and 1 are as near to 1 as 32 bits allow. */
static const u32 inverse_roots[] = {
	U32_MAX, U32_MAX, 3037000500U, 2479700525U, 2147483647U, 1920767767U, 1753413056U, 1623345051U,
	1518500250U, 1431655765U, 1358187914U, 1294981364U, 1239850263U, 1191209601U, 1147878294U, 1108955788U,
};

static void set_count(struct cobalt *c, u32 count)
{
	u64 value = c->isqrt;
	u64 rest;

	c->count = count;
	if (count < ARRAY_SIZE(inverse_roots)) {
		c->isqrt = inverse_roots[count];
		return;
	}
	/* One step of Newton's from the root of the neighbour. */
	rest = ((3ULL << 32) - count * ((value * value) >> 32)) >> 2;
	c->isqrt = (rest * value) >> 31;
}

/* interval / sqrt(count) later. Of intervals above 4.3 s the lower 32 bits count, as in Linux's CAKE. */
static s64 later(const struct cobalt *c, s64 t, const struct cobalt_params *p)
{
	return t + (((u64)(u32)p->interval * c->isqrt) >> 32);
}

bool cobalt_at_rest(const struct cobalt *c, s64 now)
{
	return !c->p_drop && !c->count && now >= c->drop_next;
}

/* A packet of the queue was dropped for want of room; true if BLUE thereby begins. */
bool cobalt_queue_full(struct cobalt *c, const struct cobalt_params *p, s64 now)
{
	bool begins = false;

	if (now - c->blue_timer > (s64)p->target) {
		begins = !c->p_drop;
		c->p_drop = c->p_drop > U32_MAX - P_INC ? U32_MAX : c->p_drop + P_INC;
		c->blue_timer = now;
	}
	c->dropping = true;
	c->drop_next = now;
	c->count = max(c->count, 1U);
	return begins;
}

/* The queue was served and had nothing; true if BLUE thereby ends. */
bool cobalt_queue_empty(struct cobalt *c, const struct cobalt_params *p, s64 now)
{
	bool ends = false;

	if (c->p_drop && now - c->blue_timer > (s64)p->target) {
		c->p_drop = c->p_drop > P_DEC ? c->p_drop - P_DEC : 0;
		c->blue_timer = now;
		ends = !c->p_drop;
	}
	c->dropping = false;
	if (c->count && now >= c->drop_next) {
		set_count(c, c->count - 1);
		c->drop_next = later(c, c->drop_next, p);
	}
	return ends;
}

/* A packet leaves. bulk_flows is 0 except in ingress mode. */
enum cobalt_verdict cobalt_dequeue(struct cobalt *c, const struct cobalt_params *p, s64 now, struct sk_buff *skb,
				   u32 bulk_flows)
{
	u64 sojourn = now - cake_skb(skb)->enqueued;
	bool over = sojourn > p->target && sojourn > p->mtu_time * bulk_flows * 2 && sojourn > p->mtu_time * 4;
	s64 late = now - c->drop_next;
	bool due = c->count && late >= 0;
	enum cobalt_verdict verdict = COBALT_PASS;

	if (over) {
		if (!c->dropping) {
			c->dropping = true;
			c->drop_next = later(c, now, p);
		}
		/* Not by set_count: the interval to the first signal keeps its root. */
		c->count = max(c->count, 1U);
	} else {
		c->dropping = false;
	}
	if (due && over) {
		verdict = INET_ECN_set_ce(skb) ? COBALT_MARKED : COBALT_DROP;
		set_count(c, c->count == U32_MAX ? U32_MAX : c->count + 1);
		c->drop_next = later(c, c->drop_next, p);
		late = now - c->drop_next;
	} else {
		while (due) {
			set_count(c, c->count - 1);
			c->drop_next = later(c, c->drop_next, p);
			late = now - c->drop_next;
			due = c->count && late >= 0;
		}
	}
	if (c->p_drop && verdict != COBALT_DROP && get_random_u32() < c->p_drop)
		verdict = verdict == COBALT_MARKED ? COBALT_BLUE_DROP_MARKED : COBALT_BLUE_DROP;
	if (!c->count)
		c->drop_next = now + p->interval;
	else if (late > 0 && verdict <= COBALT_MARKED)
		c->drop_next = now;
	return verdict;
}

/* part / whole in 2^-32, for a part below the whole. */
static u64 share(u64 part, u64 whole)
{
	while (whole >> 31) {
		whole >>= 1;
		part >>= 1;
	}
	return div64_u64(part << 32, max(whole, 1ULL));
}

/*
 * Makes ECT(1) of ECT(0) by chance; true if it did. With thresh n up to 1024 the probability rises from 0 at half the
 * target to 1/n at the target, and to 1 at twice the target; above 1024 from 0 at the target. With n = 1 it is 1 from the
 * target on.
 */
bool cake_sce_mark(u32 thresh, u64 target, u64 sojourn, struct sk_buff *skb)
{
	const u64 one = 1ULL << 32;
	u64 half = target / 2;
	u64 knee, probability;

	if (!thresh || sojourn <= half)
		return false;
	knee = thresh > 1024 ? 0 : div_u64(one, thresh);
	if (sojourn >= 2 * target)
		probability = one;
	else if (sojourn > target)
		probability = knee + (((one - knee) * share(sojourn - target, target)) >> 32);
	else if (sojourn == target)
		probability = knee;
	else
		probability = (knee * share(sojourn - half, target - half)) >> 32;
	return get_random_u32() < probability && INET_ECN_set_ect1(skb);
}
