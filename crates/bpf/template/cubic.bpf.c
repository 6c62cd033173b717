// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * CUBIC (RFC 9438), with its names and without HyStart. BPF has no floating point: windows of the
 * state are in 2^-20 segments, the curve's times in milliseconds.
 */
#include "tcp_congestion.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define ONE (1ULL << 20)
#define BETA (ONE * 7 / 10)
/* RFC 9438 4.3: 3 (1 - beta) / (1 + beta), with which the Reno-friendly window has Reno's average */
#define ALPHA (ONE * 9 / 17)
/* C = 0.4: a distance of x milliseconds is x^3 / PER_C on the curve. 10^9 / 0.4 / 2^20, rounded. */
#define PER_C 2384ULL
/* Beyond 2^20 ms the curve is a line; x^3 fits 64 bits. */
#define LONGEST_MS (1ULL << 20)

/* What an undo restores (RFC 9438 4.9). */
struct curve {
	__u64 epoch_us; /* when congestion avoidance began; 0: it has not */
	__u64 w_max;
	__u64 cwnd_prior;
};

struct state {
	struct curve now;
	struct curve before;
	__u64 w_est;
	__u64 origin; /* the plateau: W_max, or cwnd where that is larger */
	__u64 last_ack_us;
	__u32 fraction; /* of cwnd */
	__u32 k_ms;
};

_Static_assert(sizeof(struct state) <= 104, "ICSK_CA_PRIV_SIZE");

static __always_inline struct state *state_of(struct tcp_sock *tp)
{
	return (struct state *)tp->inet_conn.icsk_ca_priv;
}

/* Newton's method from above: as many steps as the smallest result needs. */
static __always_inline __u64 cube_root(__u64 a)
{
	__u64 x = 1 << 20;

	if (!a)
		return 0;
	for (int step = 0; step < 40; step++)
		x = (2 * x + a / (x * x)) / 3;
	return x;
}

/* RFC 9438 (1) */
static __always_inline __u64 w_cubic(const struct state *s, __u64 t_us)
{
	__u64 t_ms = t_us / 1000, k_ms = s->k_ms;
	bool before = t_ms < k_ms;
	__u64 x = before ? k_ms - t_ms : t_ms - k_ms, distance;

	if (x > LONGEST_MS)
		x = LONGEST_MS;
	distance = x * x * x / PER_C;
	if (!before)
		return s->origin + distance;
	return distance < s->origin ? s->origin - distance : 0;
}

/* RFC 9438 (2); after slow start without congestion W_max is cwnd, and K is 0. */
static __always_inline void begin_epoch(struct state *s, __u64 cwnd, __u64 now_us)
{
	s->origin = s->now.w_max > cwnd ? s->now.w_max : cwnd;
	s->k_ms = cube_root((s->origin - cwnd) * PER_C);
	s->w_est = cwnd;
	s->now.epoch_us = now_us | 1;
}

/* RFC 9438 5.8: time in which cwnd was not the limit earns no growth. */
static __always_inline void skip_time(struct state *s, __u64 now_us)
{
	if (s->now.epoch_us && now_us > s->last_ack_us)
		s->now.epoch_us += now_us - s->last_ack_us;
	s->last_ack_us = now_us;
}

static __always_inline __u64 grown(struct tcp_sock *tp, struct state *s, __u64 cwnd, __u32 acked)
{
	__u64 now_us = tp->tcp_mstamp, t_us, target, alpha = ALPHA;

	if (!s->now.epoch_us)
		begin_epoch(s, cwnd, now_us);
	s->last_ack_us = now_us;
	t_us = now_us > s->now.epoch_us ? now_us - s->now.epoch_us : 0;
	/* RFC 9438 4.3: the Reno-friendly region */
	if (s->w_est >= s->now.cwnd_prior)
		alpha = ONE;
	s->w_est += alpha * acked * ONE / cwnd;
	if (w_cubic(s, t_us) < s->w_est)
		return s->w_est > cwnd ? s->w_est : cwnd;
	/* RFC 9438 4.4, 4.5: where the curve will be one round trip from now */
	target = w_cubic(s, t_us + (tp->srtt_us >> 3));
	if (target < cwnd)
		target = cwnd;
	if (target > cwnd + cwnd / 2)
		target = cwnd + cwnd / 2;
	/* (target - cwnd) / cwnd for each segment, in steps that fit 64 bits */
	return cwnd + ((target - cwnd) * acked << 10) / (cwnd >> 10);
}

SEC("struct_ops")
__u32 cubic_ssthresh(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct state *s = state_of(tp);
	__u64 cwnd = tp->snd_cwnd * ONE + s->fraction;

	s->before = s->now;
	s->now.epoch_us = 0;
	s->now.cwnd_prior = cwnd;
	/* RFC 9438 4.7: fast convergence */
	s->now.w_max = cwnd < s->now.w_max ? cwnd / 2 * (ONE + BETA) / ONE : cwnd;
	/* RFC 9438 4.6. The kernel's ssthresh is whole; cwnd, once it is ssthresh, has its fraction, so
	 * that small windows do not lose up to a segment more each time. */
	cwnd = cwnd * 7 / 10;
	s->fraction = cwnd < 2 * ONE ? 0 : cwnd % ONE;
	return most(cwnd / ONE, 2);
}

SEC("struct_ops")
void cubic_cong_avoid(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct state *s = state_of(tp);
	__u32 acked = ctx[2];
	__u64 cwnd;

	if (!cwnd_limited(tp)) {
		skip_time(s, tp->tcp_mstamp);
		return;
	}
	if (in_slow_start(tp)) {
		acked = slow_start(tp, acked);
		if (!acked)
			return;
	}
	cwnd = grown(tp, s, most(tp->snd_cwnd, 1) * ONE + s->fraction, acked);
	tp->snd_cwnd = least(cwnd / ONE, tp->snd_cwnd_clamp);
	s->fraction = cwnd % ONE;
}

SEC("struct_ops")
void cubic_set_state(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];

	/* RFC 9438 4.8: after a time-out K is 0, and W_max is cwnd when congestion avoidance begins. */
	if ((__u8)ctx[1] == TCP_CA_LOSS) {
		state_of(tp)->now.w_max = 0;
		state_of(tp)->fraction = 0;
	}
}

SEC("struct_ops")
void cubic_cwnd_event(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];

	if ((__u32)ctx[1] == CA_EVENT_TX_START)
		skip_time(state_of(tp), tp->tcp_mstamp);
}

SEC("struct_ops")
__u32 cubic_undo_cwnd(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct state *s = state_of(tp);

	s->now = s->before;
	s->fraction = 0;
	return most(tp->snd_cwnd, tp->prior_cwnd);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops cubic = {
	.name = "rfc9438_cubic",
	.ssthresh = (void *)cubic_ssthresh,
	.cong_avoid = (void *)cubic_cong_avoid,
	.set_state = (void *)cubic_set_state,
	.cwnd_event = (void *)cubic_cwnd_event,
	.undo_cwnd = (void *)cubic_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
};
