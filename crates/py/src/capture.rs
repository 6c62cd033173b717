//! Reads captures.

use std::io::{Cursor, Read, stdin};
use std::path::PathBuf;

use airpath_capture::{
    CaptureError, Detail, Found, Reader, Wanted, analyse, analyse_while, collect, segments, view,
};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::interruptible::{interruptible, unasked};
use crate::object::object;

/// What a capture holds: a document. Without a path it comes from standard input, of which `head` was
/// read before.
#[pyfunction]
#[pyo3(signature = (path, head=None))]
pub(crate) fn read_capture<'py>(
    py: Python<'py>,
    path: Option<PathBuf>,
    head: Option<Vec<u8>>,
) -> PyResult<Bound<'py, PyAny>> {
    let report = interruptible(py, unasked, move |control| {
        let reader = match path {
            Some(path) => Reader::open(&path),
            None => {
                let source = Box::new(Cursor::new(head.unwrap_or_default()).chain(stdin()));
                Reader::new(source, "standard input".to_owned())
            }
        };
        reader.and_then(|reader| analyse_while(reader, || control.goes_on(0)))
    })?;
    match report {
        Ok(report) => object(py, &report),
        Err(error @ CaptureError::Read { .. }) => Err(PyOSError::new_err(error.to_string())),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// The segments of one TCP flow of a file, by the number that its report has.
#[pyfunction]
pub(crate) fn read_segments<'py>(
    py: Python<'py>,
    path: PathBuf,
    flow: u64,
    from_client: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let found = interruptible(py, unasked, move |_| {
        let report = analyse(Reader::open(&path)?)?;
        let flow = report.flows.into_iter().find(|one| one.id == flow && one.tcp.is_some());
        flow.map(|flow| segments(&path, &flow, from_client)).transpose()
    })?;
    match found {
        Ok(Some(found)) => object(py, &found),
        Ok(None) => {
            Err(PyValueError::new_err(format!("flow {flow} is not a TCP flow of the capture")))
        }
        Err(error @ CaptureError::Read { .. }) => Err(PyOSError::new_err(error.to_string())),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// Flows of a file, packet by packet, by the numbers that its report has: the segments of the
/// client (true) or of the server (false), or all packets (none).
#[pyfunction]
pub(crate) fn read_flows<'py>(
    py: Python<'py>,
    path: PathBuf,
    wanted: Vec<(u64, Option<bool>)>,
    most: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let found = interruptible(py, unasked, move |_| {
        let report = analyse(Reader::open(&path)?)?;
        let flows = wanted.iter().map(|&(id, from_client)| {
            let flow = report.flows.iter().find(|one| one.id == id)?;
            match from_client {
                Some(_) if flow.tcp.is_none() => None,
                Some(from_client) => Some(Wanted::Segments(flow, from_client)),
                None => Some(Wanted::Packets(flow)),
            }
        });
        let flows: Option<Vec<_>> = flows.collect();
        flows.map(|flows| collect(&path, &flows, most)).transpose()
    })?;
    match found {
        Ok(Some(found)) => object(py, &found),
        Ok(None) => Err(PyValueError::new_err("a flow that is wanted is not in the capture")),
        Err(error @ CaptureError::Read { .. }) => Err(PyOSError::new_err(error.to_string())),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// The data of ends of TCP flows, by the numbers that the report has, to be drawn: `view::View`.
#[pyfunction]
pub(crate) fn view_flows<'py>(
    py: Python<'py>,
    path: PathBuf,
    wanted: Vec<(u64, bool)>,
    bins: usize,
    packets: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let found = interruptible(py, unasked, move |_| {
        let report = analyse(Reader::open(&path)?)?;
        let flows = wanted.iter().map(|&(id, from_client)| {
            let flow = report.flows.iter().find(|one| one.id == id && one.tcp.is_some())?;
            Some(Wanted::Segments(flow, from_client))
        });
        let Some(flows) = flows.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let detail = Detail { bins, packets };
        let views = collect(&path, &flows, usize::MAX)?.into_iter().zip(&flows).filter_map(
            |pair| match pair {
                (Found::Segments(found), Wanted::Segments(flow, from_client)) => {
                    let tcp = flow.tcp.as_ref()?;
                    let stream = if *from_client { &tcp.from_client } else { &tcp.from_server };
                    let scale = stream.window.as_ref().and_then(|window| window.scale);
                    Some(view(&found, scale, detail))
                }
                _ => None,
            },
        );
        Ok(Some(views.collect::<Vec<_>>()))
    })?;
    match found {
        Ok(Some(found)) => object(py, &found),
        Ok(None) => {
            Err(PyValueError::new_err("a flow that is wanted is no TCP flow of the capture"))
        }
        Err(error @ CaptureError::Read { .. }) => Err(PyOSError::new_err(error.to_string())),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}
