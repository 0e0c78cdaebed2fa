/* SPDX-License-Identifier: GPL-2.0 */
/*
 * COBALT as the SCE project's qdiscs have it: CoDel's schedule twice, for CE and for SCE, with a count that steps back
 * in time, and BLUE. All times are nanoseconds.
 */
#ifndef BAKEOFF_COBALT_H
#define BAKEOFF_COBALT_H

#include <linux/math64.h>
#include <linux/random.h>
#include <net/inet_ecn.h>

/* Counts whose inverse square root is kept; a larger one is reached from the one before by a step of Newton's. */
#define COBALT_ROOTS	16

struct cobalt_params {
	s64 interval;		/* above target for so long before the first CE; 100 ms */
	s64 target;		/* 5 ms */
	s64 sce_interval;	/* as interval; 0: no SCE */
	s64 sce_target;
	s64 blue_threshold;	/* a delay from which BLUE's probability rises */
};

struct cobalt_schedule {
	s64 next;		/* the next signal */
	u32 count;
	u32 root;		/* 2^32 / sqrt(count) */
	bool dropping;
};

struct cobalt {
	struct cobalt_schedule ce;
	struct cobalt_schedule sce;
	s64 blue_timer;
	u32 p_drop;		/* of 2^32 */
};

/* The thresholds that a packet's delay is above. */
struct cobalt_over {
	bool ce;
	bool sce;
	bool blue;
};

/* What shall happen to a packet. */
struct cobalt_signal {
	bool ce;
	bool sce;
	bool drop;
};

static u32 cobalt_roots[COBALT_ROOTS];

static inline u32 cobalt_newton(u32 count, u32 root)
{
	u64 square = ((u64)root * root) >> 32;
	u64 rest = ((3ULL << 32) - count * square) >> 2;

	return (rest * root) >> 31;
}

/* To be called once, before everything else. */
static inline void cobalt_fill_roots(void)
{
	u32 root = U32_MAX;
	int count, step;

	cobalt_roots[0] = root;
	for (count = 1; count < COBALT_ROOTS; count++) {
		for (step = 0; step < 4; step++)
			root = cobalt_newton(count, root);
		cobalt_roots[count] = root;
	}
}

/* An sce_thresh of n makes the interval of SCE rtt/n; 0 is no SCE. All times are divided by part. */
static inline void cobalt_params_set(struct cobalt_params *params, u32 rtt_us, u32 sce_thresh, u32 part)
{
	u64 interval = (u64)rtt_us * NSEC_PER_USEC;
	u64 target = div_u64(interval, 20);

	params->interval = div_u64(interval, part);
	params->target = div_u64(target, part);
	params->sce_interval = sce_thresh ? div_u64(div_u64(interval, sce_thresh), part) : 0;
	params->sce_target = div_u64(target / 2, part);
	params->blue_threshold = div_u64(interval * 4, part);
}

static inline void cobalt_init(struct cobalt *cobalt)
{
	*cobalt = (struct cobalt){ .ce.root = U32_MAX, .sce.root = U32_MAX };
}

static inline bool cobalt_due(const struct cobalt_schedule *s, s64 now)
{
	return s->count && now >= s->next;
}

static inline s64 cobalt_control(const struct cobalt_schedule *s, s64 t, s64 interval)
{
	return t + (s64)mul_u64_u32_shr(interval, s->root, 32);
}

/* What was left of the way up becomes way down, and the reverse. One that rests (count 0) has a whole interval to go. */
static inline s64 cobalt_reflect(const struct cobalt_schedule *s, s64 now, s64 interval)
{
	return cobalt_control(s, 2 * now - max(s->next, now), interval);
}

static inline void cobalt_set_count(struct cobalt_schedule *s, u32 count)
{
	s->count = count;
	s->root = count < COBALT_ROOTS ? cobalt_roots[count] : cobalt_newton(count, s->root);
}

static inline void cobalt_signalled(struct cobalt_schedule *s, s64 interval)
{
	if (s->count < U32_MAX)
		cobalt_set_count(s, s->count + 1);
	s->next = cobalt_control(s, s->next, interval);
}

static inline void cobalt_step_back(struct cobalt_schedule *s, s64 interval)
{
	cobalt_set_count(s, s->count - 1);
	s->next = cobalt_control(s, s->next, interval);
}

/* Back by every signal that would have been due by now. */
static inline void cobalt_unwind(struct cobalt_schedule *s, s64 now, s64 interval)
{
	while (cobalt_due(s, now))
		cobalt_step_back(s, interval);
}

static inline void cobalt_at_least_one(struct cobalt_schedule *s)
{
	if (!s->count)
		cobalt_set_count(s, 1);
}

static inline void cobalt_fill(struct cobalt_schedule *s, s64 now)
{
	s->dropping = true;
	s->next = now;
	cobalt_at_least_one(s);
}

/* Whether a signal is due for a packet that can take it; ECT(0) alone takes SCE. */
static inline bool cobalt_signal(struct cobalt_schedule *s, s64 now, s64 interval, bool over, bool reflects, bool takes)
{
	bool due = cobalt_due(s, now);

	if (over != s->dropping) {
		s->dropping = over;
		if (reflects && !due)
			s->next = cobalt_reflect(s, now, interval);
		else
			s->next = cobalt_control(s, now, interval);
		if (over)
			due = false;
	}
	if (over)
		cobalt_at_least_one(s);
	if (!due)
		return false;
	if (over) {
		if (takes)
			cobalt_signalled(s, interval);
		return takes;
	}
	cobalt_step_back(s, interval);
	cobalt_unwind(s, now, interval);
	return false;
}

/* Far too much delay: BLUE's probability rises, at most once per target. */
static inline void cobalt_queue_full(struct cobalt *cobalt, const struct cobalt_params *params, s64 now)
{
	if (now - cobalt->blue_timer > params->target) {
		cobalt->p_drop = min_t(u64, (u64)cobalt->p_drop + (1 << 24), U32_MAX);
		cobalt->blue_timer = now;
	}
	cobalt_fill(&cobalt->ce, now);
	cobalt_fill(&cobalt->sce, now);
}

/* A packet with this ECN field leaves. */
static inline struct cobalt_signal cobalt_dequeue(struct cobalt *cobalt, const struct cobalt_params *params, s64 now,
						  u8 ecn, struct cobalt_over over)
{
	struct cobalt_signal signal = {};

	if (params->sce_interval)
		signal.sce = cobalt_signal(&cobalt->sce, now, params->sce_interval, over.sce, true, ecn == INET_ECN_ECT_0);
	if (cobalt_signal(&cobalt->ce, now, params->interval, over.ce, false, true)) {
		signal.ce = ecn != INET_ECN_NOT_ECT;
		signal.drop = !signal.ce;
	}
	if (over.blue)
		cobalt_queue_full(cobalt, params, now);
	if (cobalt->p_drop && get_random_u32() < cobalt->p_drop)
		signal.drop = true;
	if (!cobalt->ce.count)
		cobalt->ce.next = now + params->interval;
	else if (now > cobalt->ce.next && !signal.drop)
		cobalt->ce.next = now;
	return signal;
}

/* Nothing is queued: BLUE's probability falls, at most once per target, and the schedules step back. */
static inline void cobalt_queue_empty(struct cobalt *cobalt, const struct cobalt_params *params, s64 now)
{
	struct cobalt_schedule *ce = &cobalt->ce, *sce = &cobalt->sce;

	if (cobalt->p_drop && now - cobalt->blue_timer > params->target) {
		cobalt->p_drop -= min(cobalt->p_drop, 1U << 20);
		cobalt->blue_timer = now;
	}
	cobalt_unwind(ce, now, params->interval);
	if (ce->dropping) {
		ce->next = cobalt_control(ce, now, params->interval);
		ce->dropping = false;
	}
	if (!params->sce_interval)
		return;
	cobalt_unwind(sce, now, params->sce_interval);
	if (sce->dropping) {
		sce->next = cobalt_reflect(sce, now, params->sce_interval);
		sce->dropping = false;
	}
}

#endif
