//! The host's kernel accepts the programs, and keeps nothing of them.
//!
//! `make test` runs these tests if it is root.
#![cfg(feature = "kernel")]

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::thread;

use airpath_bpf::{CongestionControl, Cubic, Generation, Kind, SenderObserver};
use airpath_testing::has;

/// The kernel's description of its own types, without which no program can be adapted to it
/// (CONFIG_DEBUG_INFO_BTF).
const BTF: &str = "/sys/kernel/btf/vmlinux";

fn registered(name: &str) -> bool {
    let there = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    there.split_whitespace().any(|known| known == name)
}

#[test]
#[ignore = "needs root"]
fn two_runs_have_congestion_controls_of_their_own() {
    if !has("two_runs_have_congestion_controls_of_their_own", &[BTF]) {
        return;
    }
    let first = Cubic::load(4000).unwrap_or_else(|error| panic!("{error}"));
    let second = Cubic::load(4000).unwrap_or_else(|error| panic!("{error}"));
    let names = |cubic: &Cubic| Generation::ALL.map(|generation| cubic.name(generation));
    let (of_first, of_second) = (names(&first), names(&second));
    assert!(of_first.iter().chain(&of_second).all(|name| registered(name)));
    assert!(of_first.iter().all(|name| !of_second.contains(name)));
    drop(first);
    assert!(of_second.iter().all(|name| registered(name)));
    assert!(!of_first.iter().any(|name| registered(name)));
    drop(second);
    assert!(!of_second.iter().any(|name| registered(name)));
}

#[test]
#[ignore = "needs root"]
fn one_of_several_in_an_object_is_registered_while_it_lives() {
    if !has("one_of_several_in_an_object_is_registered_while_it_lives", &[BTF]) {
        return;
    }
    let object = include_bytes!(concat!(env!("OUT_DIR"), "/cubic.bpf.o"));
    let load = || CongestionControl::load(object, Some("air_hystartpp"));
    let first = load().unwrap_or_else(|error| panic!("{error:?}"));
    assert!(first.name().starts_with("air_hystartpp") && registered(first.name()));
    let second = load().unwrap_or_else(|error| panic!("{error:?}"));
    assert_ne!(first.name(), second.name());
    let names = [first.name().to_owned(), second.name().to_owned()];
    drop((first, second));
    assert!(!names.iter().any(|name| registered(name)));
}

#[test]
#[ignore = "needs root"]
fn a_namespace_without_senders_has_no_records() {
    if !has("a_namespace_without_senders_has_no_records", &[BTF]) {
        return;
    }
    // No namespace has the number 1.
    let mut observer = SenderObserver::new(&[1]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(observer.take().unwrap_or_else(|error| panic!("{error}")), []);
    assert_eq!(observer.lost(), 0);
}

/// Sends a byte back and forth this many times over the loopback; returns the client's port.
fn echo(times: usize) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_nodelay(true).unwrap();
        let mut byte = [0];
        while socket.read_exact(&mut byte).is_ok() {
            socket.write_all(&byte).unwrap();
        }
    });
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    let mut byte = [7];
    for _ in 0..times {
        socket.write_all(&byte).unwrap();
        socket.read_exact(&mut byte).unwrap();
    }
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    server.join().unwrap();
    port
}

fn here() -> u32 {
    fs::metadata("/proc/self/ns/net").unwrap().ino() as u32
}

#[test]
#[ignore = "needs root"]
fn every_acknowledgement_is_a_record() {
    if !has("every_acknowledgement_is_a_record", &[BTF]) {
        return;
    }
    let mut observer = SenderObserver::new(&[here()]).unwrap_or_else(|error| panic!("{error}"));
    let port = echo(50);
    let mut records = observer.take().unwrap_or_else(|error| panic!("{error}"));
    records.retain(|record| record.local_port == port);
    // The client appears with the handshake, and after that only acknowledgements came.
    assert_eq!(records[0].kind, Kind::Begin);
    let acks: Vec<_> = records.iter().filter(|record| record.kind == Kind::Ack).collect();
    // Each record shows the effect of the one before; the SYN counts as a byte. An answer may come
    // after the acknowledgement.
    let mut acked: Vec<u64> = acks.iter().map(|record| record.acked_bytes).collect();
    acked.dedup();
    assert_eq!(acked[..50], (1..=50).collect::<Vec<_>>());
    assert!(acks.iter().all(|record| record.remote == Ipv4Addr::LOCALHOST && !record.v6));
    assert!(acks.iter().all(|record| record.cwnd >= 10 && record.timeouts == 0));
}

#[test]
#[ignore = "needs root"]
fn records_without_room_are_counted() {
    if !has("records_without_room_are_counted", &[BTF]) {
        return;
    }
    const TIMES: usize = 40_000;
    let mut observer = SenderObserver::new(&[here()]).unwrap_or_else(|error| panic!("{error}"));
    // Both ends get an acknowledgement each time, and nobody fetches the records.
    echo(TIMES);
    let taken = observer.take().unwrap_or_else(|error| panic!("{error}")).len();
    // 8 MiB of records of 152 bytes behind a head of 8.
    assert!((50_000..=(8 << 20) / 160).contains(&taken), "{taken}");
    assert!(observer.lost() as usize + taken >= 2 * TIMES - 100, "{} and {taken}", observer.lost());
}
