//! Observes TCP senders in chosen network namespaces.

use std::cell::RefCell;
use std::rc::Rc;

use libbpf_rs::{Link, MapCore, MapFlags, Object, RingBuffer, RingBufferBuilder};

use crate::object::{Elf, attempt, load};
use crate::{BpfError, Record};

static ELF: &Elf<[u8]> = &Elf(*include_bytes!(concat!(env!("OUT_DIR"), "/observer.bpf.o")));

/// Observes senders until it is dropped. It stays in its thread.
#[derive(Debug)]
pub struct SenderObserver {
    seen: Rc<RefCell<Vec<Record>>>,
    records: RingBuffer<'static>,
    // Must be dropped before the object.
    _links: Vec<Link>,
    object: Object,
}

impl SenderObserver {
    /// Begins to observe these network namespaces, given by the inode of `/proc/PID/ns/net`.
    ///
    /// # Errors
    ///
    /// Without CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, or if the kernel has no BTF.
    pub fn new(networks: &[u32]) -> Result<Self, BpfError> {
        let object = load(&ELF.0, |_| Ok(()))?;
        let map = |name: &str| {
            object.maps().find(|map| map.name() == name).expect("a map of observer.bpf.c")
        };
        attempt("choosing network namespaces", || {
            (0u32..).zip(networks).try_for_each(|(end, inode)| {
                let (key, value) = (inode.to_ne_bytes(), end.to_ne_bytes());
                map("networks").update(&key, &value, MapFlags::ANY)
            })
        })?;
        let seen = Rc::new(RefCell::new(Vec::new()));
        let records = attempt("making the ring buffer", || {
            let (ring, seen) = (map("records"), Rc::clone(&seen));
            let mut builder = RingBufferBuilder::new();
            builder.add(&ring, move |bytes| {
                seen.borrow_mut().extend(Record::parse(bytes));
                0
            })?;
            builder.build()
        })?;
        let links = attempt("attaching to tracepoints", || {
            object.progs_mut().map(|program| program.attach()).collect()
        })?;
        Ok(Self { seen, records, _links: links, object })
    }

    /// The records since the last call, in order for each processor.
    ///
    /// # Errors
    ///
    /// Those of libbpf.
    pub fn take(&mut self) -> Result<Vec<Record>, BpfError> {
        attempt("reading the ring buffer", || self.records.consume())?;
        Ok(self.seen.take())
    }

    /// Number of records lost for lack of room.
    pub fn lost(&self) -> u64 {
        let bss = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let value = bss.and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?);
        let word = value.and_then(|value| value.first_chunk().copied());
        word.map_or(0, u64::from_ne_bytes)
    }
}
