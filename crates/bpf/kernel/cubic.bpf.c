// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * CUBIC (RFC 9438) with the slow start of a chosen generation: what crates/tcp does in
 * congestion/linux_cubic.rs and congestion/slow_start, for the host's kernel. No floating point:
 * times are in microseconds, the curve's in milliseconds.
 */
#include "kernel.h"
#include "variant.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Length of a jiffy in microseconds; set by the loader. */
const volatile __u32 tick_us = 4000;

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
} __attribute__((preserve_access_index));

#define INFINITE_SSTHRESH 0x7fffffff
#define TCP_CONG_NON_RESTRICTED 1
#define CA_EVENT_TX_START 0

static __always_inline __u32 least(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __always_inline __u32 most(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

static __always_inline struct state *state_of(struct tcp_sock *tp)
{
	return (struct state *)tp->inet_conn.icsk_ca_priv;
}

static __always_inline bool in_slow_start(struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* Whether cwnd limits the sender; in slow start, if more than half was in use (RFC 7661 1). */
static __always_inline bool cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline void exit_slow_start(struct tcp_sock *tp, struct state *s, __u32 reason,
					    __u32 base_rtt, __u32 round_rtt)
{
	s->found.reason = reason;
	s->found.base_rtt = base_rtt;
	s->found.round_rtt = round_rtt;
	tp->snd_ssthresh = tp->snd_cwnd;
}

/* HyStart: Ha and Rhee, "Taming the elephants", 2011; for what Linux made of it see hystart.rs. */

#define LOW_WINDOW 16
#define TRAIN_SPACING_US 2000

static __always_inline __u32 stamp(struct state *s, __u64 now_us)
{
	if (s->generation & MILLISECONDS)
		now_us = now_us / 1000 * 1000;
	return now_us;
}

static __always_inline void follow_rounds(struct tcp_sock *tp, struct state *s)
{
	if ((__s32)(tp->snd_una - s->round_end) <= 0)
		return;
	s->round_start = stamp(s, tp->tcp_mstamp);
	s->round_last_ack = s->round_start;
	s->round_end = tp->snd_nxt;
	s->samples = 0;
	s->round_rtt = 0;
}

/* The ACK train that began with the round is as long as the path. */
static __always_inline bool train_is_long(struct tcp_sock *tp, struct state *s)
{
	__u32 now = stamp(s, tp->tcp_mstamp);

	if (!(s->generation & (TRAIN_HALF | TRAIN_CUSHIONED)))
		return 0;
	if (now - s->round_last_ack > TRAIN_SPACING_US)
		return 0;
	s->round_last_ack = now;
	return now - s->round_start > longest_train(tp, s->generation, s->min_rtt);
}

/* Highest RTT of a round that does not indicate a queue. */
static __always_inline __u32 highest(__u32 min_rtt)
{
	return min_rtt + least(most(min_rtt / 8, 4000), 16000);
}

/* Even the smallest RTT of the round is well above the connection's: the reason, or nothing. */
static __always_inline __u32 delay_rose(struct state *s, __u32 rtt)
{
	bool complete = s->samples >= SAMPLES;

	if (!(s->generation & DELAY))
		return FOUND_NOTHING;
	if (!complete || !(s->generation & FALLING_MINIMUM))
		s->round_rtt = s->round_rtt ? least(s->round_rtt, rtt) : rtt;
	if (!complete) {
		s->samples++;
		s->round_min_rtt = s->min_rtt;
		return FOUND_NOTHING;
	}
	if (s->round_rtt <= highest(s->min_rtt))
		return FOUND_NOTHING;
	return s->round_rtt <= highest(s->round_min_rtt) ? FOUND_FALLING_MINIMUM : FOUND_DELAY;
}

static __always_inline void examine(struct tcp_sock *tp, struct state *s, __u32 rtt)
{
	__u32 reason;

	if (s->generation & MILLISECONDS)
		rtt = most(rtt / 125, 1) * 125;
	s->min_rtt = s->min_rtt ? least(s->min_rtt, rtt) : rtt;
	if (s->done || !in_slow_start(tp))
		return;
	if ((s->generation & ROUND_PROMPT) ||
	    ((s->generation & ROUND_FROM_LOW_WINDOW) && tp->snd_cwnd >= LOW_WINDOW))
		follow_rounds(tp, s);
	if (tp->snd_cwnd < LOW_WINDOW)
		return;
	if (train_is_long(tp, s)) {
		s->done = 1;
		exit_slow_start(tp, s, FOUND_ACK_TRAIN, s->min_rtt, 0);
		return;
	}
	reason = delay_rose(s, rtt);
	if (reason) {
		s->done = 1;
		exit_slow_start(tp, s, reason, s->min_rtt, s->round_rtt);
	}
}

/* HyStart++ (RFC 9406), with the names of 4.2 and 4.3. */

#define CSS_GROWTH_DIVISOR 4
#define CSS_ROUNDS 5
#define L 8

static __always_inline void compare_rounds(struct state *s)
{
	if (s->samples < SAMPLES || !s->round_rtt)
		return;
	if (s->css) {
		if (s->round_rtt < s->baseline_rtt)
			s->css = 0;
	} else if (s->last_round_rtt && s->round_rtt >= highest(s->last_round_rtt)) {
		s->css = 1;
		s->css_rounds = 0;
		s->baseline_rtt = s->round_rtt;
		s->round_min_rtt = s->last_round_rtt;
	}
}

static __always_inline void end_round(struct tcp_sock *tp, struct state *s)
{
	if ((__s32)(tp->snd_una - s->round_end) < 0)
		return;
	s->round_end = tp->snd_nxt;
	s->last_round_rtt = s->round_rtt;
	s->round_rtt = 0;
	s->samples = 0;
	if (s->css && ++s->css_rounds >= CSS_ROUNDS) {
		s->css = 0;
		exit_slow_start(tp, s, FOUND_CSS, s->round_min_rtt, s->baseline_rtt);
	}
}

/* Grows cwnd in slow start; returns the segments left for congestion avoidance. */
static __always_inline __u32 grow(struct tcp_sock *tp, struct state *s, __u32 acked, bool plus_plus)
{
	__u32 room = tp->snd_ssthresh - tp->snd_cwnd;
	__u32 step = acked, left;

	if (plus_plus && !paced(tp))
		step = least(step, L);
	if (plus_plus && s->css) {
		s->credit += step;
		step = s->credit / CSS_GROWTH_DIVISOR;
		s->credit %= CSS_GROWTH_DIVISOR;
	}
	left = step > room ? step - room : 0;
	tp->snd_cwnd = least(tp->snd_cwnd + least(step, room), tp->snd_cwnd_clamp);
	return left;
}

/* CUBIC; for its differences from RFC 9438 see linux_cubic.rs. */

#define RECOMPUTE_US 31250
#define FASTEST 2
#define SLOWEST_WITHOUT_W_MAX 20
#define AT_TARGET 100

/* Newton's method from above, with as many steps as the smallest result needs. */
static __always_inline __u32 cube_root(__u64 a)
{
	__u64 x = 1 << 20;

	if (!a)
		return 0;
	for (int step = 0; step < 40; step++)
		x = (2 * x + a / (x * x)) / 3;
	return x;
}

/* RFC 9438 (2): K = cbrt((W_max - cwnd) / C), C = 0.4 */
static __always_inline void begin_epoch(struct tcp_sock *tp, struct state *s)
{
	s->origin = most(s->w_max, tp->snd_cwnd);
	s->k_ms = cube_root((s->origin - tp->snd_cwnd) * 2500000000ULL);
	s->w_est = tp->snd_cwnd;
	s->w_est_credit = 0;
	s->pace = 0;
	s->epoch_us = tp->tcp_mstamp | 1;
}

/* RFC 9438 (1), rounded down */
static __always_inline __u32 w_cubic(struct state *s, __u64 t_us)
{
	__u64 t_ms = t_us / 1000;
	bool before = t_ms < s->k_ms;
	__u64 x = before ? s->k_ms - t_ms : t_ms - s->k_ms;
	__u64 distance;

	if (x > 1 << 20)
		x = 1 << 20;
	distance = x * x * x / 2500000000ULL;
	if (!before)
		return s->origin + distance;
	return distance < s->origin ? s->origin - distance : 0;
}

/* RFC 9438 (4): a segment for each 15/8 windows */
static __always_inline __u32 reno(struct state *s, __u32 cwnd)
{
	__u32 step = most(cwnd * 15 / 8, 1);
	__u32 steps = s->w_est_credit ? (s->w_est_credit - 1) / step : 0;

	s->w_est += steps;
	s->w_est_credit -= steps * step;
	return s->w_est;
}

/* Acknowledged segments per segment of growth. */
static __always_inline void choose_pace(struct tcp_sock *tp, struct state *s)
{
	__u32 cwnd = tp->snd_cwnd, now = tp->tcp_mstamp, target, estimate, pace;

	if (s->pace && s->pace_cwnd == cwnd && now - s->pace_us <= RECOMPUTE_US)
		return;
	/* RFC 9438 4.2 */
	target = w_cubic(s, tp->tcp_mstamp - s->epoch_us + s->min_rtt);
	pace = target > cwnd ? cwnd / (target - cwnd) : AT_TARGET * cwnd;
	if (!s->w_max)
		pace = least(pace, SLOWEST_WITHOUT_W_MAX);
	/* RFC 9438 4.3 */
	estimate = reno(s, cwnd);
	if (estimate > cwnd)
		pace = least(pace, cwnd / (estimate - cwnd));
	s->pace = most(pace, FASTEST);
	s->pace_us = now;
	s->pace_cwnd = cwnd;
}

static __always_inline void avoid_congestion(struct tcp_sock *tp, struct state *s, __u32 acked)
{
	__u32 grown = 0, pace;

	if (!s->epoch_us)
		begin_epoch(tp, s);
	s->w_est_credit += acked;
	choose_pace(tp, s);
	pace = most(s->pace, FASTEST);
	if (s->credit >= pace) {
		/* The credit was earned at a slower pace: it is worth one segment. */
		grown = 1;
		s->credit = 0;
	}
	s->credit += acked;
	grown += s->credit / pace;
	s->credit %= pace;
	tp->snd_cwnd = least(tp->snd_cwnd + grown, tp->snd_cwnd_clamp);
}

/* struct tcp_congestion_ops */

static __always_inline void begin(__u64 *ctx, __u32 generation)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct state *s = state_of(tp);

	__builtin_memset(s, 0, sizeof(*s));
	s->found.magic = FOUND_MAGIC;
	s->generation = generation;
	s->round_end = generation & PLUS_PLUS ? tp->snd_nxt : tp->snd_una;
	s->round_last_ack = tp->tcp_mstamp - 1000000;
}

SEC("struct_ops")
__u32 cubic_ssthresh(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct state *s = state_of(tp);
	__u32 cwnd = tp->snd_cwnd;

	s->epoch_us = 0;
	s->credit = 0;
	/* RFC 9438 4.7 */
	s->w_max = cwnd < s->w_max ? cwnd * 1741ULL / 2048 : cwnd;
	/* RFC 9438 4.6, in 1024ths */
	return most(cwnd * 717ULL / 1024, 2);
}

SEC("struct_ops")
void cubic_cong_avoid(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct state *s = state_of(tp);
	__u32 acked = ctx[2];
	bool limited = cwnd_limited(tp), slow = in_slow_start(tp);
	/* RFC 9406 4.3: later slow starts are standard. */
	bool plus_plus = (s->generation & PLUS_PLUS) && slow &&
			 tp->snd_ssthresh >= INFINITE_SSTHRESH;

	if (limited && slow) {
		if (!(s->generation & (ROUND_PROMPT | ROUND_FROM_LOW_WINDOW | PLUS_PLUS)) && !s->done)
			follow_rounds(tp, s);
		acked = grow(tp, s, acked, plus_plus);
	}
	if (plus_plus) {
		compare_rounds(s);
		end_round(tp, s);
		return;
	}
	if (limited && acked)
		avoid_congestion(tp, s, acked);
}

SEC("struct_ops")
void cubic_pkts_acked(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	const struct ack_sample *sample = (void *)ctx[1];
	struct state *s = state_of(tp);
	__s32 rtt = sample->rtt_us;

	if (rtt < 0)
		return;
	if (!rtt)
		rtt = 1;
	if (!(s->generation & PLUS_PLUS)) {
		examine(tp, s, rtt);
		return;
	}
	s->min_rtt = s->min_rtt ? least(s->min_rtt, rtt) : rtt;
	s->round_rtt = s->round_rtt ? least(s->round_rtt, rtt) : rtt;
	if (s->samples < SAMPLES)
		s->samples++;
}

SEC("struct_ops")
void cubic_set_state(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct state *s = state_of(tp);
	__u8 next = ctx[1];

	if (next != TCP_CA_LOSS)
		return;
	/* RFC 9438 4.8: K is 0, W_max is cwnd when congestion avoidance begins. */
	s->w_max = 0;
	s->epoch_us = 0;
	s->credit = 0;
	if (s->generation & PLUS_PLUS)
		return;
	s->min_rtt = 0;
	s->done = 0;
	s->samples = 0;
	s->round_rtt = 0;
	s->round_last_ack = tp->tcp_mstamp - 1000000;
	s->found.reason = FOUND_NOTHING;
}

/* RFC 9438 5.8: time in which nothing was in flight earns no growth. */
SEC("struct_ops")
void cubic_cwnd_event(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];
	struct state *s = state_of(tp);
	__u64 idle_us;

	if ((__u32)ctx[1] != CA_EVENT_TX_START || !s->epoch_us)
		return;
	idle_us = (__u64)((__u32)bpf_jiffies64() - tp->lsndtime) * tick_us;
	s->epoch_us += idle_us;
	if (s->epoch_us > tp->tcp_mstamp)
		s->epoch_us = tp->tcp_mstamp | 1;
}

SEC("struct_ops")
__u32 cubic_undo_cwnd(__u64 *ctx)
{
	struct tcp_sock *tp = (void *)ctx[0];

	return most(tp->snd_cwnd, tp->prior_cwnd);
}

/* Members have the kernel's names; their order does not matter. */
struct tcp_congestion_ops {
	char name[TCP_CA_NAME_MAX];
	void (*init)(__u64 *ctx);
	__u32 (*ssthresh)(__u64 *ctx);
	void (*cong_avoid)(__u64 *ctx);
	void (*pkts_acked)(__u64 *ctx);
	void (*set_state)(__u64 *ctx);
	void (*cwnd_event)(__u64 *ctx);
	__u32 (*undo_cwnd)(__u64 *ctx);
	__u32 flags;
};

/* The link unregisters it when the process that loaded it ends. NON_RESTRICTED: a child network
 * namespace may use it. */
#define GENERATION(id, text, generation)                                                           \
	SEC("struct_ops")                                                                          \
	void id##_init(__u64 *ctx)                                                                 \
	{                                                                                          \
		begin(ctx, generation);                                                            \
	}                                                                                          \
	SEC(".struct_ops.link")                                                                    \
	struct tcp_congestion_ops id = {                                                           \
		.name = text,                                                                      \
		.init = id##_init,                                                                 \
		.ssthresh = cubic_ssthresh,                                                        \
		.cong_avoid = cubic_cong_avoid,                                                    \
		.pkts_acked = cubic_pkts_acked,                                                    \
		.set_state = cubic_set_state,                                                      \
		.cwnd_event = cubic_cwnd_event,                                                    \
		.undo_cwnd = cubic_undo_cwnd,                                                      \
		.flags = TCP_CONG_NON_RESTRICTED,                                                  \
	}

/* src/cubic.rs uses these names. */
GENERATION(none, "air_none", 0);
GENERATION(v4_19, "air_4.19", TRAIN_HALF | DELAY | FALLING_MINIMUM | MILLISECONDS);
GENERATION(v4_19_131, "air_4.19.131", TRAIN_HALF | DELAY | MILLISECONDS);
GENERATION(v4_19_both, "air_4.19_both", TRAIN_HALF | DELAY | MILLISECONDS | ROUND_PROMPT);
GENERATION(v5_6, "air_5.6", TRAIN_CUSHIONED | DELAY | FALLING_MINIMUM);
GENERATION(v5_8, "air_5.8", TRAIN_CUSHIONED | DELAY);
GENERATION(v5_16, "air_5.16", TRAIN_CUSHIONED | DELAY | ROUND_FROM_LOW_WINDOW);
GENERATION(v6_14, "air_6.14", TRAIN_CUSHIONED | DELAY | ROUND_PROMPT);
GENERATION(plus_plus, "air_hystartpp", PLUS_PLUS);
