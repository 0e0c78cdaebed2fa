// SPDX-License-Identifier: GPL-2.0
/* autorate-ingress: the bandwidth follows the rate at which packets arrive in trains. */
#include "cake.h"

void cake_autorate_pass(struct cake_autorate *a, s64 now)
{
	a->window_bytes = 0;
	a->last_packet = now;
}

/* Whether a new estimate is to take effect, which is at most every 250 ms. */
bool cake_autorate_arrived(struct cake_autorate *a, s64 now, u32 bytes)
{
	u64 interval = min_t(u64, now - a->last_packet, NSEC_PER_SEC);
	u64 window = max(now - a->window_begin, 1LL);
	u64 rate;

	a->window_bytes += bytes;
	a->interval = cake_average(a->interval, interval, interval > a->interval ? 2 : 8);
	a->last_packet = now;
	/* A gap ends a train. */
	if (interval <= a->interval)
		return false;
	if (window <= U32_MAX)
		rate = mul_u64_u32_div(a->window_bytes, NSEC_PER_SEC, window);
	else
		rate = div64_u64(a->window_bytes * MSEC_PER_SEC, div_u64(window, NSEC_PER_MSEC));
	a->peak = cake_average(a->peak, rate, rate > a->peak ? 2 : 8);
	a->window_bytes = 0;
	a->window_begin = now;
	if (now <= a->last_change + 250 * NSEC_PER_MSEC)
		return false;
	a->last_change = now;
	return true;
}
