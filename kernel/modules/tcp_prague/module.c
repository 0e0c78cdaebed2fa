// SPDX-License-Identifier: GPL-2.0
/* tcp_prague: registration, what Prague does without ECN, and the choice between its forms. */
#include <linux/module.h>

#include "prague.h"

unsigned int prague_form;

/* The numbers with colons tell bakeoff which versions this module has. */
BOUNDED(prague_form, 0, PRAGUE_FORMS - 1,
	"0: module 0.7; 1: 2020-08; 2: 2020-04; 3: 2021-06; 4: 2019-11; 5: 2019-09; read when a connection is made");

void prague_withdraw(struct sock *sk, u8 pacing_shift)
{
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED, SK_PACING_NONE);
	WRITE_ONCE(sk->sk_pacing_shift, pacing_shift);
	if (!tcp_ecn_mode_any(tcp_sk(sk)))
		INET_ECN_dontxmit(sk);
}

void prague_become_reno(struct sock *sk)
{
	prague_withdraw(sk, sk->sk_pacing_shift);
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &prague_reno_ops);
}

struct tcp_congestion_ops prague_reno_ops __read_mostly = {
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= tcp_reno_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "prague-reno",
};

static int __init prague_register(void)
{
	int err = prague_ect1_register();

	if (err)
		return err;
	err = tcp_register_congestion_control(&prague_ops);
	if (err)
		prague_ect1_unregister();
	return err;
}

static void __exit prague_unregister(void)
{
	tcp_unregister_congestion_control(&prague_ops);
	prague_ect1_unregister();
}

module_init(prague_register);
module_exit(prague_unregister);

MODULE_AUTHOR("The bakeoff authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TCP Prague, written from a description of version 0.7");
MODULE_VERSION("0.7");
