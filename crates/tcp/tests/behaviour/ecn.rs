//! Explicit congestion notification (RFC 3168): the handshake, the echo, and which packets are
//! marked.

use airpath_base::{Ecn, Flags, Segment};
use airpath_tcp::{CeCounters, EcnConfig, EndpointConfig};

use crate::script::*;

const SETUP: Flags = Flags::ECE.with(Flags::CWR);

fn ecn() -> EndpointConfig {
    EndpointConfig { ecn: EcnConfig::Classic, ..config() }
}

/// A SYN that requests ECN.
fn asking() -> Segment {
    Segment { flags: syn().flags.with(SETUP), ..syn() }
}

/// A SYN+ACK that agrees.
fn agreeing() -> Segment {
    Segment { flags: syn_ack().flags.with(Flags::ECE), ..syn_ack() }
}

/// A connection that the peer opened.
fn accepted() -> Script {
    let mut end = Script::listen(&ecn());
    end.send(asking());
    end.recv();
    end.tick(RTT);
    end.send(ack(0));
    assert!(end.ecn_negotiated());
    end
}

fn echoes(segment: &Segment) -> bool {
    segment.flags.has(Flags::ECE)
}

#[test]
fn a_syn_asks_with_both_flags_and_a_syn_ack_agrees_with_one() {
    // RFC 3168 6.1.1
    let mut end = Script::connect(&ecn());
    assert!(end.recv().flags.has(Flags::SYN.with(SETUP)));
    end.send(agreeing());
    assert!(end.ecn_negotiated());
    assert!(!echoes(&end.recv_ack(1)));

    let mut end = Script::listen(&ecn());
    end.send(asking());
    let answer = end.recv().flags;
    assert!(answer.has(Flags::SYN.with(Flags::ACK).with(Flags::ECE)) && !answer.has(Flags::CWR));
    assert!(!end.ecn_negotiated());
    end.send(ack(0));
    assert!(end.ecn_negotiated());
}

#[test]
fn both_ends_have_to_want_it() {
    // RFC 3168 6.1.1; a SYN+ACK with both flags comes from a host that reflects them.
    let reflecting = Segment { flags: agreeing().flags.with(Flags::CWR), ..agreeing() };
    for answer in [syn_ack(), reflecting] {
        let mut end = Script::connect(&ecn());
        end.recv();
        end.send(answer);
        assert!(end.is_established() && !end.ecn_negotiated());
    }
    for (config, question) in [(ecn(), syn()), (config(), asking())] {
        let mut end = Script::listen(&config);
        end.send(question);
        assert!(!echoes(&end.recv()));
        end.send(ack(0));
        end.send_marked(data(0), Ecn::Ce);
        end.send(data(1));
        assert!(!end.ecn_negotiated() && !echoes(&end.recv_ack(at(2))));
    }
}

#[test]
fn a_syn_that_was_not_answered_is_repeated_without_ecn() {
    // RFC 3168 6.1.1.1; 6.1.1: after it no data is marked.
    let mut end = Script::connect(&ecn());
    end.recv();
    end.tick(ms(1000));
    let again = end.recv().flags;
    assert!(again.has(Flags::SYN) && !again.has(Flags::ECE) && !again.has(Flags::CWR));
    end.send(agreeing());
    assert!(!end.ecn_negotiated());

    // At the peer the second SYN counts, which does not request ECN.
    let mut end = Script::listen(&ecn());
    end.send(asking());
    assert!(echoes(&end.recv()));
    end.send(syn());
    assert!(!echoes(&end.recv()));
    end.send(ack(0));
    assert!(!end.ecn_negotiated());
}

#[test]
fn congestion_is_echoed_until_the_sender_has_reacted() {
    // RFC 3168 6.1.3
    let mut end = accepted();
    end.send_marked(data(0), Ecn::Ect0);
    end.send_marked(data(1), Ecn::Ect0);
    assert!(!echoes(&end.recv_ack(at(2))));
    // The first mark is reported at once.
    end.send_marked(data(2), Ecn::Ce);
    assert!(echoes(&end.recv_ack(at(3))));
    for segment in [3, 5, 7] {
        end.send_marked(data(segment), Ecn::Ect0);
        end.send_marked(data(segment + 1), Ecn::Ect0);
        assert!(echoes(&end.recv_ack(at(segment + 2))));
    }
    // Data from this end carries it.
    end.offer(10);
    assert!(echoes(&end.recv()));
    let reacted = Segment { flags: data(9).flags.with(Flags::CWR), ..data(9) };
    end.send_marked(reacted, Ecn::Ect0);
    assert!(!echoes(&end.recv_ack(at(10))));
    end.send_marked(data(10), Ecn::Ect0);
    end.send_marked(data(11), Ecn::Ect0);
    assert!(!echoes(&end.recv_ack(at(12))));
}

#[test]
fn a_mark_on_the_segment_that_says_it_has_reacted_starts_again() {
    // RFC 3168 6.1.3
    let mut end = accepted();
    end.send_marked(data(0), Ecn::Ce);
    end.recv();
    let reacted = Segment { flags: data(1).flags.with(Flags::CWR), ..data(1) };
    end.send_marked(reacted, Ecn::Ce);
    end.send_marked(data(2), Ecn::Ect0);
    assert!(echoes(&end.recv_ack(at(3))));
}

#[test]
fn marks_on_what_is_out_of_the_window_are_ignored() {
    // RFC 3168 6.1.5
    let mut end = accepted();
    end.send_marked(data(0), Ecn::Ect0);
    end.send_marked(data(0), Ecn::Ce);
    assert!(!echoes(&end.recv_ack(at(1))));
    end.send_marked(data(2000), Ecn::Ce);
    assert!(!echoes(&end.recv_ack(at(1))));
    // The marks are counted nevertheless (RFC 9768 3.2.1).
    assert_eq!(end.ce_counters(), CeCounters { packets: 2, bytes: 2 * u64::from(MSS) });
}

#[test]
fn a_mark_above_a_gap_is_echoed() {
    let mut end = accepted();
    end.send_marked(data(1), Ecn::Ce);
    assert!(echoes(&end.recv_ack(at(0))));
}

#[test]
fn only_new_data_is_marked_as_capable() {
    // RFC 3168 6.1.1, 6.1.4, 6.1.5
    let mut end = Script::connect(&ecn());
    let syn = end.recv();
    end.tick(RTT);
    end.send(agreeing());
    let pure = end.recv_ack(1);
    end.send(ack(0));
    end.offer(2 * u64::from(MSS));
    let (first, second) = (end.recv(), end.recv());
    let codepoints = [syn, pure, first, second].map(|segment| end.ecn_codepoint(&segment));
    assert_eq!(codepoints, [Ecn::NotEct, Ecn::NotEct, Ecn::Ect0, Ecn::Ect0]);
    end.tick(RTO);
    let again = end.recv();
    assert_eq!((again.seq, end.ecn_codepoint(&again)), (first.seq, Ecn::NotEct));
    end.send(ack(2));
    end.close();
    let fin = end.recv();
    assert_eq!(end.ecn_codepoint(&fin), Ecn::NotEct);
}

#[test]
fn an_echo_reduces_the_window_once_a_round_and_only_if_agreed() {
    // RFC 3168 6.1.2
    for agreed in [true, false] {
        let mut end = Script::connect(&ecn());
        end.recv();
        end.tick(RTT);
        end.send(if agreed { agreeing() } else { syn_ack() });
        end.send(ack(0));
        end.offer(u64::MAX);
        assert_eq!(end.recv_count(), 11);
        end.tick(RTT);
        for segment in 1..10 {
            end.send(Segment { flags: Flags::ACK.with(Flags::ECE), ..ack(segment) });
        }
        assert_eq!(end.cwnd() < 10, agreed);
        assert_eq!(end.counters().ecn_reductions, u64::from(agreed));
        let told = std::iter::repeat_with(|| end.recv()).take(3);
        assert_eq!(told.filter(|sent| sent.flags.has(Flags::CWR)).count(), usize::from(agreed));
    }
}
