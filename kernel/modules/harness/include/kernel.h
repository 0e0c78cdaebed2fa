/* SPDX-License-Identifier: GPL-2.0 */
/*
 * As much of the kernel as a congestion control sees, for programs of user space: the harness gives one connection its
 * state, calls the module's hooks, and prints what they did. Written for the modules beside it; nothing of the kernel
 * was copied.
 */
#ifndef BAKEOFF_HARNESS_KERNEL_H
#define BAKEOFF_HARNESS_KERNEL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define U16_MAX UINT16_MAX
#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX

#define min(a, b) ({ __auto_type _a = (a); __auto_type _b = (b); _a < _b ? _a : _b; })
#define max(a, b) ({ __auto_type _a = (a); __auto_type _b = (b); _a > _b ? _a : _b; })
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max3(a, b, c) max(max(a, b), c)
#define max_t(type, a, b) max((type)(a), (type)(b))
#define clamp_t(type, value, least, most) min_t(type, max_t(type, value, least), most)
#define clamp(value, least, most) min(max(value, least), most)
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define cmpxchg(place, old, new) (*(place) == (old) ? (*(place) = (new), (old)) : *(place))
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define unlikely(x) (x)
#define likely(x) (x)
#define __read_mostly
#define __init __attribute__((unused))
#define __exit __attribute__((unused))
#define BIT(n) (1U << (n))
#define check_add_overflow(a, b, sum) __builtin_add_overflow(a, b, sum)
#define check_mul_overflow(a, b, product) __builtin_mul_overflow(a, b, product)
#define USEC_PER_SEC 1000000L
#define ilog2(x) (63 - __builtin_clzll(x))
#define DIV_ROUND_UP(a, b) (((a) + (b) - 1) / (b))

/* Parameters are plain variables here. */
struct kernel_param;
struct kernel_param_ops {
	int (*set)(const char *value, const struct kernel_param *param);
	int (*get)(char *buffer, const struct kernel_param *param);
};
static inline int param_set_uint_minmax(const char *value, const struct kernel_param *param, unsigned int least, unsigned int most)
{
	(void)value, (void)param, (void)least, (void)most;
	return 0;
}
static inline int param_get_uint(char *buffer, const struct kernel_param *param)
{
	(void)buffer, (void)param;
	return 0;
}
#define module_param_cb(name, ops, arg, perm) static const void *const param_##name[] __attribute__((unused)) = { ops, arg }
#define module_param(name, type, perm) static const void *const param_##name __attribute__((unused)) = &(name)
#define MODULE_PARM_DESC(name, text) _Static_assert(1, text)
#define MODULE_AUTHOR(text) _Static_assert(1, text)
#define MODULE_LICENSE(text) _Static_assert(1, text)
#define MODULE_DESCRIPTION(text) _Static_assert(1, text)
#define MODULE_VERSION(text) _Static_assert(1, text)
#define THIS_MODULE NULL
#define module_init(function) _Static_assert(1, #function)
#define module_exit(function) _Static_assert(1, #function)

static inline u64 div64_u64(u64 a, u64 b) { return a / b; }
static inline u64 div_u64(u64 a, u32 b) { return a / b; }
static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift) { return (unsigned __int128)a * b >> shift; }
#define DIV64_U64_ROUND_UP(a, b) ({ u64 _d = (b); div64_u64((a) + _d - 1, _d); })
#define DIV_U64_ROUND_UP(a, b) DIV64_U64_ROUND_UP(a, b)

enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum tcp_ca_event {
	CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS, CA_EVENT_ECN_NO_CE, CA_EVENT_ECN_IS_CE
};
enum { CA_ACK_SLOWPATH = BIT(0), CA_ACK_WIN_UPDATE = BIT(1), CA_ACK_ECE = BIT(2) };
enum { TCP_CONG_NON_RESTRICTED = BIT(0), TCP_CONG_NEEDS_ECN = BIT(1), TCP_CONG_NEEDS_ACCECN = BIT(2),
       TCP_CONG_ECT_1_NEGOTIATION = BIT(3), TCP_CONG_NO_FALLBACK_RFC3168 = BIT(4) };
enum { TCP_CLOSE = 7, TCP_LISTEN = 10, TCP_ESTABLISHED = 1 };
enum { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };
enum { INET_DIAG_VEGASINFO = 3, INET_DIAG_DCTCPINFO = 9 };
#define ICSK_CA_PRIV_SIZE (13 * sizeof(u64))
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define INET_ECN_ECT_1 1
#define TCP_ACCECN_OPT_COUNTER_SEEN 2
#define TCP_ACCECN_OPT_FAIL_RECV BIT(3)
#define HZ 1000

struct sock;
struct rate_sample { int acked_sacked; };
struct ack_sample { u32 pkts_acked; s32 rtt_us; u32 in_flight; };
union tcp_cc_info {
	struct { u16 dctcp_enabled, dctcp_ce_state; u32 dctcp_alpha, dctcp_ab_ecn, dctcp_ab_tot; } dctcp;
};

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);
	u32 flags;
	void *owner;
	char name[16];
};

struct net { struct { int sysctl_tcp_min_snd_mss; u8 sysctl_tcp_tso_rtt_log; } ipv4; };

/* One connection; the kernel's three structures in one. */
struct sock {
	u64 priv[ICSK_CA_PRIV_SIZE / sizeof(u64)];
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state, icsk_ca_initialized, sk_state;
	int sk_pacing_status;
	unsigned long sk_pacing_rate, sk_max_pacing_rate;
	u8 sk_pacing_shift;
	u16 sk_gso_max_segs;
	u32 sk_gso_max_size, min_rtt_us;
	u64 tcp_mstamp;
	u32 mss_cache, headers, snd_cwnd, snd_cwnd_cnt, snd_ssthresh, snd_cwnd_clamp, snd_cwnd_stamp, prior_cwnd;
	u32 packets_out, max_packets_out, snd_una, snd_nxt, delivered, delivered_ce, srtt_us;
	u32 delivered_ecn_bytes[3], lsndtime;
	struct { u32 rcv_mss; } icsk_ack;
	u8 saw_accecn_opt, accecn_fail_mode;
	bool is_cwnd_limited, write_queue_empty, ecn, accecn;
	struct net net;
};
#define tcp_sock sock
#define inet_connection_sock sock

/* Defined where a harness needs it. */
extern u32 tcp_jiffies32;

static inline struct sock *tcp_sk(const struct sock *sk) { return (struct sock *)sk; }
static inline struct sock *inet_csk(const struct sock *sk) { return (struct sock *)sk; }
static inline void *inet_csk_ca(const struct sock *sk) { return (void *)sk->priv; }
static inline struct net *sock_net(const struct sock *sk) { return (struct net *)&sk->net; }
static inline u32 tcp_snd_cwnd(const struct sock *tp) { return tp->snd_cwnd; }
static inline void tcp_snd_cwnd_set(struct sock *tp, u32 value) { tp->snd_cwnd = value; }
static inline bool tcp_in_slow_start(const struct sock *tp) { return tp->snd_cwnd < tp->snd_ssthresh; }
static inline u32 tcp_packets_in_flight(const struct sock *tp) { return tp->packets_out; }
static inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	return sk->is_cwnd_limited || (tcp_in_slow_start(sk) && sk->snd_cwnd < 2 * sk->max_packets_out);
}
static inline u32 tcp_slow_start(struct sock *tp, u32 acked)
{
	u32 cwnd = min(tp->snd_cwnd + acked, tp->snd_ssthresh);

	acked -= cwnd - tp->snd_cwnd;
	tp->snd_cwnd = min(cwnd, tp->snd_cwnd_clamp);
	return acked;
}
static inline u32 tcp_min_rtt(const struct sock *tp) { return tp->min_rtt_us; }
static inline u32 tcp_mss_to_mtu(struct sock *sk, u32 mss) { return mss + sk->headers; }
static inline u32 tcp_bound_to_half_wnd(struct sock *tp, u32 size) { (void)tp; return size; }
static inline bool tcp_ecn_mode_any(const struct sock *tp) { return tp->ecn; }
static inline bool tcp_ecn_mode_accecn(const struct sock *tp) { return tp->accecn; }
static inline bool tcp_write_queue_empty(const struct sock *sk) { return sk->write_queue_empty; }
static inline void INET_ECN_dontxmit(struct sock *sk) { (void)sk; }
static inline void tcp_cong_avoid_ai(struct sock *tp, u32 w, u32 acked)
{
	u32 steps = tp->snd_cwnd_cnt >= w;

	if (steps)
		tp->snd_cwnd_cnt = 0;
	tp->snd_cwnd_cnt += acked;
	steps += tp->snd_cwnd_cnt / w;
	tp->snd_cwnd_cnt %= w;
	tp->snd_cwnd = min(tp->snd_cwnd + steps, tp->snd_cwnd_clamp);
}
static inline unsigned long int_sqrt(unsigned long x)
{
	unsigned long root = 0;

	while ((root + 1) * (root + 1) <= x)
		root++;
	return root;
}
static inline bool before(u32 a, u32 b) { return (s32)(a - b) < 0; }
#define after(a, b) before(b, a)
u32 tcp_reno_ssthresh(struct sock *sk);
u32 tcp_reno_undo_cwnd(struct sock *sk);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
static inline int tcp_register_congestion_control(struct tcp_congestion_ops *ops) { (void)ops; return 0; }
static inline void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops) { (void)ops; }

#endif
