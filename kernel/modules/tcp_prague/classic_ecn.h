/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Prague's guess, until 2021, at whether a classic (RFC 3168) AQM marks it.
 *
 * A slow estimator of the RTT and its mean deviation runs beside TCP's. Each round with marks moves a score up where the
 * deviation or the standing queue is larger than an L4S queue's would be, and down otherwise. From 8.0 on a reduction is of
 * 0.625 (score - 8) at least, of 0.625 at most. 2^-20 is the unit of scores, logarithms and alpha.
 */
#ifndef BAKEOFF_CLASSIC_ECN_H
#define BAKEOFF_CLASSIC_ECN_H

#include <linux/log2.h>
#include <linux/types.h>

#define CLASSIC_ECN_ONE		(1 << 20)
#define CLASSIC_ECN_SLOWEST	18

struct classic_ecn {
	u64 srtt;	/* us, times 2^gain */
	u64 mdev;	/* us, times 2^(gain + 1) */
	s32 score;
	u32 mdev_carry;	/* what the integer logarithms left over */
	u32 depth_carry;
	u8 gain;
};

static inline void classic_ecn_init(struct classic_ecn *c, u32 srtt_us)
{
	c->gain = CLASSIC_ECN_SLOWEST;
	c->srtt = (u64)srtt_us << CLASSIC_ECN_SLOWEST;
	c->mdev = 1ULL << (CLASSIC_ECN_SLOWEST + 1);
}

/* The RTT of the newest segment. */
static inline void classic_ecn_rtt(struct classic_ecn *c, u32 rtt_us)
{
	u64 srtt_us;

	if (!c->srtt)
		c->srtt = (u64)rtt_us << c->gain;
	srtt_us = c->srtt >> c->gain;
	c->srtt += rtt_us - srtt_us;
	c->mdev += (rtt_us > srtt_us ? rtt_us - srtt_us : srtt_us - rtt_us) - (c->mdev >> (c->gain + 1));
}

/* At a reduction the gain follows the time that a window of this size takes to grow. */
static inline void classic_ecn_reduction(struct classic_ecn *c, u32 ssthresh)
{
	u32 l = ilog2(max(ssthresh, 1U));
	u8 gain = min(l + l / 2 + 1, (u32)CLASSIC_ECN_SLOWEST);

	if (gain > c->gain) {
		c->srtt <<= gain - c->gain;
		c->mdev <<= gain - c->gain;
	} else {
		c->srtt >>= c->gain - gain;
		c->mdev >>= c->gain - gain;
	}
	c->gain = gain;
}

static inline s32 classic_ecn_lg(u64 value, u32 *carry)
{
	u64 sum = max_t(u64, value + *carry, 1);
	u32 l = ilog2(sum);

	*carry = sum - (1ULL << l);
	return l << 20;
}

/* A round with marks. The ambiguous queue has a deviation of 750 us and a depth of 2 ms: these are their logarithms. */
static inline void classic_ecn_round(struct classic_ecn *c, u32 min_rtt_us)
{
	u64 srtt_us = c->srtt >> c->gain;

	c->score += (classic_ecn_lg(c->mdev >> (c->gain + 1), &c->mdev_carry) - 10014683) / 2;
	if (srtt_us > min_rtt_us)
		c->score += max((classic_ecn_lg(srtt_us - min_rtt_us, &c->depth_carry) - 11498458) / 2, 0);
	c->score = clamp(c->score, 0, 17 * CLASSIC_ECN_ONE);
}

/* The least alpha of a reduction. */
static inline u32 classic_ecn_alpha(const struct classic_ecn *c)
{
	return max(min(c->score, 9 * CLASSIC_ECN_ONE) - 8 * CLASSIC_ECN_ONE, 0) * 5 / 8;
}

#endif
