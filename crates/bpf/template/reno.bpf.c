// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/* Reno (RFC 5681): the window grows by one segment each round trip, and congestion halves it. */
#include "tcp_congestion.h"

/* The kernel takes struct_ops only under a licence that is compatible with the GPL. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct state {
	__u32 counted; /* acknowledged segments towards the next segment of growth */
};

static __always_inline struct state *state_of(struct tcp_sock *tp)
{
	return (struct state *)tp->inet_conn.icsk_ca_priv;
}

/* RFC 5681 (4), with cwnd for FlightSize: the same while cwnd is what limits the sender. */
SEC("struct_ops")
__u32 reno_ssthresh(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];

	state_of(tp)->counted = 0;
	return most(tp->snd_cwnd / 2, 2);
}

SEC("struct_ops")
void reno_cong_avoid(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct state *s = state_of(tp);
	__u32 acked = ctx[2], cwnd, grown = 0;

	if (!cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		acked = slow_start(tp, acked);
		if (!acked)
			return;
	}
	/* RFC 3465 2.1: a segment for each window that is acknowledged. */
	cwnd = most(tp->snd_cwnd, 1);
	if (s->counted >= cwnd) {
		/* It was counted for a larger window, and is worth one segment. */
		s->counted = 0;
		grown = 1;
		cwnd++;
	}
	s->counted += acked;
	grown += s->counted / cwnd;
	s->counted %= cwnd;
	tp->snd_cwnd = least(tp->snd_cwnd + grown, tp->snd_cwnd_clamp);
}

SEC("struct_ops")
__u32 reno_undo_cwnd(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];

	return most(tp->snd_cwnd, tp->prior_cwnd);
}

/* NON_RESTRICTED: programs that are not root may choose it too. */
SEC(".struct_ops.link")
struct tcp_congestion_ops reno = {
	.name = "rfc5681_reno",
	.ssthresh = (void *)reno_ssthresh,
	.cong_avoid = (void *)reno_cong_avoid,
	.undo_cwnd = (void *)reno_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
};
