// SPDX-License-Identifier: GPL-2.0
/* tcp_sce: registration and parameters. */
#include <linux/module.h>

#include "sce.h"

unsigned int reno_form;
unsigned int dctcp_form;
unsigned int cubic_origin;
unsigned int sce_feedback;
unsigned int sce_mss;
unsigned int sce_pacing;

static int set_choice(const char *value, const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, 0, 1);
}

static const struct kernel_param_ops choice_ops = { .set = set_choice, .get = param_get_uint };

module_param_cb(reno_form, &choice_ops, &reno_form, 0644);
MODULE_PARM_DESC(reno_form, "reno-sce: 0: the later form; 1: of 2019");
module_param_cb(dctcp_form, &choice_ops, &dctcp_form, 0644);
MODULE_PARM_DESC(dctcp_form, "dctcp-sce: 0: the later form; 1: of 2019");
module_param_cb(cubic_origin, &choice_ops, &cubic_origin, 0644);
MODULE_PARM_DESC(cubic_origin, "cubic-sce, a mark before K: 0: the curve is continuous; 1: as SCE's tree computes it");
module_param_cb(sce_feedback, &choice_ops, &sce_feedback, 0644);
MODULE_PARM_DESC(sce_feedback, "0: marked bytes as AccECN counts them; 1: an ACK that reports any is marked as a whole");
module_param_cb(sce_mss, &choice_ops, &sce_mss, 0644);
MODULE_PARM_DESC(sce_mss, "a segment is: 0: mss_cache; 1: rcv_mss");
module_param_cb(sce_pacing, &choice_ops, &sce_pacing, 0644);
MODULE_PARM_DESC(sce_pacing, "1: pace");

static struct tcp_congestion_ops *const all_ops[] = { &reno_sce_ops, &dctcp_sce_ops, &cubic_sce_ops };

static int __init sce_register(void)
{
	int i, err;

	for (i = 0; i < ARRAY_SIZE(all_ops); i++) {
		err = tcp_register_congestion_control(all_ops[i]);
		if (err)
			goto undo;
	}
	return 0;
undo:
	while (i--)
		tcp_unregister_congestion_control(all_ops[i]);
	return err;
}

static void __exit sce_unregister(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(all_ops); i++)
		tcp_unregister_congestion_control(all_ops[i]);
}

module_init(sce_register);
module_exit(sce_unregister);

MODULE_AUTHOR("The bakeoff authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("The congestion controls of SCE with the feedback of AccECN");
MODULE_VERSION("1.0");
