// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Records what the kernel's TCP senders do, one record per event: an acknowledgement arrives, the
 * congestion state changes, a connection begins or ends.
 */
#include "kernel.h"
#include "variant.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define KIND_ACK 0
#define KIND_CONGESTION 1
#define KIND_BEGIN 2
#define KIND_END 3

/* Mirrored in src/record.rs. */
struct record {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 cookie;
	__u64 acked_bytes;
	__u32 end;
	__u32 cwnd;
	__u32 ssthresh;
	__u32 srtt_us;
	__u32 rtt_us;
	__u32 min_rtt_us;
	__u32 in_flight;
	__u32 lost;
	__u32 delivered;
	__u32 prior_cwnd;
	__u32 rto; /* jiffies */
	__u32 sent;
	__u32 retransmitted;
	__u32 timeouts;
	__u32 mss;
	__u32 base_rtt_us;
	__u32 round_rtt_us;
	__u32 peer_window; /* bytes */
	__u16 local_port;
	__u16 remote_port;
	__u8 kind;
	__u8 congestion_state;
	__u8 next_congestion_state;
	__u8 found;
	__u8 v6;
	__u8 detector;
	__u8 samples; /* RTTs of the round, at most SAMPLES */
	__u8 spare[5];
	__u8 remote[16];
	char congestion[TCP_CA_NAME_MAX];
	__u32 train_us; /* ABSENT: none */
	__u32 longest_train_us;
};
_Static_assert(sizeof(struct record) == 152, "src/record.rs");

/* What may end slow start before a loss: detector. */
#define DETECTOR_NONE 0
#define DETECTOR_HYSTART 1
#define DETECTOR_PLUS_PLUS 2
#define DETECTOR_CSS 3 /* HyStart++ in conservative slow start */

#define ABSENT 0xffffffff

struct tcp_congestion_ops {
	char name[TCP_CA_NAME_MAX];
} __attribute__((preserve_access_index));

/* Network namespaces to observe, from inode number to number of the end. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 512);
	__type(key, __u32);
	__type(value, __u32);
} networks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} records SEC(".maps");

/* An acknowledgement is seen before it is processed: its effect is in the next record. */
struct pending {
	__u32 acknowledged;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct pending);
} sockets SEC(".maps");

/* Records lost for lack of room. */
__u64 lost_records;

static __always_inline __u32 *end_of(struct sock *sk)
{
	__u32 inode = sk->__sk_common.skc_net.net->ns.inum;

	return bpf_map_lookup_elem(&networks, &inode);
}

static __always_inline bool is_cubic(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && name[2] == 'b' && name[3] == 'i' &&
	       name[4] == 'c' && !name[5];
}

/* The ACK train that began with the round, and the longest that does not end slow start. */
static __always_inline void tell_train(struct record *record, struct tcp_sock *tp, __u32 generation,
				       __u32 min_rtt, __u32 start, __u32 last_ack)
{
	if (min_rtt)
		record->longest_train_us = longest_train(tp, generation, min_rtt);
	if (start && (__s32)(last_ack - start) >= 0)
		record->train_us = last_ack - start;
}

/* One of airpath's own. Once it has found something, the RTTs are those that it compared. */
static __always_inline void tell_ours(struct record *record, struct tcp_sock *tp, struct state *s)
{
	bool found = s->found.reason != FOUND_NOTHING;

	record->found = s->found.reason;
	record->samples = s->samples;
	record->round_rtt_us = s->round_rtt;
	if (s->generation & PLUS_PLUS) {
		record->detector = s->css ? DETECTOR_CSS : DETECTOR_PLUS_PLUS;
		record->base_rtt_us = s->css ? s->baseline_rtt : s->last_round_rtt;
	} else if (s->generation) {
		record->detector = DETECTOR_HYSTART;
		record->base_rtt_us = s->min_rtt;
		tell_train(record, tp, s->generation, s->min_rtt, s->round_start,
			   s->round_last_ack);
	}
	if (found) {
		record->base_rtt_us = s->found.base_rtt;
		if (s->found.round_rtt)
			record->round_rtt_us = s->found.round_rtt;
	}
}

/* tcp_cubic. A round without a start means that HyStart is switched off. */
static __always_inline void tell_cubic(struct record *record, struct tcp_sock *tp,
				       struct bictcp *cubic)
{
	__u32 start = BPF_CORE_READ(cubic, round_start);

	record->found = BPF_CORE_READ(cubic, found);
	record->samples = BPF_CORE_READ(cubic, sample_cnt);
	record->base_rtt_us = BPF_CORE_READ(cubic, delay_min);
	if (record->samples)
		record->round_rtt_us = BPF_CORE_READ(cubic, curr_rtt);
	if (!start)
		return;
	record->detector = DETECTOR_HYSTART;
	tell_train(record, tp, TRAIN_CUSHIONED, record->base_rtt_us, start,
		   BPF_CORE_READ(cubic, last_ack));
}

/* HyStart's round and finding, from where the congestion control keeps them. */
static __always_inline void tell_hystart(struct record *record, struct tcp_sock *tp)
{
	void *private = tp->inet_conn.icsk_ca_priv;
	struct state ours;

	record->train_us = record->longest_train_us = ABSENT;
	bpf_probe_read_kernel(&ours, sizeof(ours), private);
	if (ours.found.magic == FOUND_MAGIC)
		tell_ours(record, tp, &ours);
	else if (bpf_core_type_exists(struct bictcp) && is_cubic(record->congestion))
		tell_cubic(record, tp, private);
}

static __always_inline void tell(struct sock *sk, struct tcp_sock *tp, __u32 end, __u8 kind,
				 __u8 next_state)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;
	struct record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);

	if (!record) {
		__sync_fetch_and_add(&lost_records, 1);
		return;
	}
	__builtin_memset(record, 0, sizeof(*record));
	record->time_ns = bpf_ktime_get_ns();
	record->cookie = bpf_get_socket_cookie(sk);
	record->acked_bytes = tp->bytes_acked;
	record->end = end;
	record->cwnd = tp->snd_cwnd;
	record->ssthresh = tp->snd_ssthresh;
	record->srtt_us = tp->srtt_us >> 3;
	record->rtt_us = tp->rack.rtt_us;
	record->min_rtt_us = tp->rtt_min.s[0].v;
	/* RFC 6675 pipe */
	record->in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	record->lost = tp->lost_out;
	record->delivered = tp->delivered;
	record->prior_cwnd = tp->prior_cwnd;
	record->rto = icsk->icsk_rto;
	record->sent = tp->data_segs_out;
	record->retransmitted = tp->total_retrans;
	if (bpf_core_field_exists(tp->total_rto))
		record->timeouts = tp->total_rto;
	record->mss = tp->mss_cache;
	record->peer_window = tp->snd_wnd;
	record->local_port = sk->__sk_common.skc_num;
	record->remote_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	record->kind = kind;
	record->congestion_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	record->next_congestion_state = next_state;
	if (sk->__sk_common.skc_family == AF_INET6) {
		record->v6 = 1;
		BPF_CORE_READ_INTO(&record->remote, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr8);
	} else {
		__u32 address = sk->__sk_common.skc_daddr;

		__builtin_memcpy(record->remote, &address, sizeof(address));
	}
	bpf_probe_read_kernel(record->congestion, sizeof(record->congestion),
			      &icsk->icsk_ca_ops->name);
	tell_hystart(record, tp);
	/* The reader polls now and then: waking it up for each record would cost more. */
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* A segment has arrived, and is not processed yet. */
SEC("tp_btf/tcp_probe")
int on_segment(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct pending *pending;
	__u32 *end = end_of(sk);
	__u32 outstanding;

	if (!tp || !end)
		return 0;
	outstanding = tp->packets_out;
	pending = bpf_sk_storage_get(&sockets, sk, 0, outstanding ? BPF_SK_STORAGE_GET_F_CREATE : 0);
	if (!pending)
		return 0;
	/* With nothing outstanding it acknowledges nothing, but the previous one may have. */
	if (outstanding || pending->acknowledged)
		tell(sk, tp, *end, KIND_ACK, 0);
	pending->acknowledged = outstanding;
	return 0;
}

SEC("tp_btf/tcp_cong_state_set")
int on_congestion_state(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct inet_connection_sock *icsk;
	__u8 next = ctx[1];
	__u32 *end = end_of(sk);

	if (!tp || !end)
		return 0;
	icsk = &tp->inet_conn;
	/* Each time-out enters the same state again. */
	if (next != TCP_CA_LOSS && next == BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state))
		return 0;
	tell(sk, tp, *end, KIND_CONGESTION, next);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int on_state(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	int before = ctx[1], state = ctx[2];
	__u32 *end = end_of(sk);

	if (!tp || !end)
		return 0;
	if (state == TCP_ESTABLISHED)
		tell(sk, tp, *end, KIND_BEGIN, 0);
	else if (state == TCP_CLOSE && before != TCP_LISTEN)
		tell(sk, tp, *end, KIND_END, 0);
	return 0;
}
