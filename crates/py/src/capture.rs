//! Reads captures.

use std::fs::metadata;
use std::io::{Cursor, Read, stdin};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use airpath_capture::{
    CaptureError, CaptureReport, Detail, Found, Reader, Wanted, analyse_while, collect, segments,
    view,
};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::interruptible::{Control, interruptible, unasked};
use crate::object::object;

/// The report of the file that was read last: whoever reads packets of its flows has just read it.
static LAST: Mutex<Option<(Content, Arc<CaptureReport>)>> = Mutex::new(None);

/// Identifies the content of a file, as the kernel knows it: whatever is written changes it.
#[derive(PartialEq, Eq)]
struct Content {
    path: PathBuf,
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Content {
    /// None for what is not a file, such as a pipe.
    fn of(path: &Path) -> Option<Self> {
        let about = metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some(Self {
            path: path.to_owned(),
            device: about.dev(),
            inode: about.ino(),
            bytes: about.size(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }
}

/// The report of a file; `None` if `control` ended it.
fn report_of(path: &Path, control: &Control) -> Result<Option<Arc<CaptureReport>>, CaptureError> {
    let content = Content::of(path);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let (Some(content), Some((known, report))) = (&content, &*last)
        && content == known
    {
        return Ok(Some(Arc::clone(report)));
    }
    *last = None;
    drop(last);
    let Some(report) = analyse_while(Reader::open(path)?, || control.goes_on(0))? else {
        return Ok(None);
    };
    let report = Arc::new(report);
    // A capture may grow while it is read.
    if let Some(content) = content.filter(|content| Content::of(path).as_ref() == Some(content)) {
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some((content, Arc::clone(&report)));
    }
    Ok(Some(report))
}

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
        if let Some(path) = path {
            return report_of(&path, control);
        }
        let source = Box::new(Cursor::new(head.unwrap_or_default()).chain(stdin()));
        let reader = Reader::new(source, "standard input".to_owned())?;
        Ok(analyse_while(reader, || control.goes_on(0))?.map(Arc::new))
    })?;
    match report {
        Ok(report) => object(py, &report.as_deref()),
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
    let found = interruptible(py, unasked, move |control| {
        let Some(report) = report_of(&path, control)? else { return Ok(None) };
        let flow = report.flows.iter().find(|one| one.id == flow && one.tcp.is_some());
        flow.map(|flow| segments(&path, &report, flow, from_client)).transpose()
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
    let found = interruptible(py, unasked, move |control| {
        let Some(report) = report_of(&path, control)? else { return Ok(None) };
        let flows = wanted.iter().map(|&(id, from_client)| {
            let flow = report.flows.iter().find(|one| one.id == id)?;
            match from_client {
                Some(_) if flow.tcp.is_none() => None,
                Some(from_client) => Some(Wanted::Segments(flow, from_client)),
                None => Some(Wanted::Packets(flow)),
            }
        });
        let flows: Option<Vec<_>> = flows.collect();
        flows.map(|flows| collect(&path, &report, &flows, most)).transpose()
    })?;
    match found {
        Ok(Some(found)) => {
            // A flow's packets are freed before those of the next one are converted.
            let objects = found.into_iter().map(|one| object(py, &one));
            Ok(PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
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
    let found = interruptible(py, unasked, move |control| {
        let Some(report) = report_of(&path, control)? else { return Ok(None) };
        let flows = wanted.iter().map(|&(id, from_client)| {
            let flow = report.flows.iter().find(|one| one.id == id && one.tcp.is_some())?;
            Some(Wanted::Segments(flow, from_client))
        });
        let Some(flows) = flows.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let detail = Detail { bins, packets };
        let views = collect(&path, &report, &flows, usize::MAX)?
            .into_iter()
            .zip(&flows)
            .filter_map(|pair| match pair {
                (Found::Segments(found), Wanted::Segments(flow, from_client)) => {
                    let tcp = flow.tcp.as_ref()?;
                    let stream = if *from_client { &tcp.from_client } else { &tcp.from_server };
                    let scale = stream.window.as_ref().and_then(|window| window.scale);
                    Some(view(&found, scale, detail))
                }
                _ => None,
            });
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
