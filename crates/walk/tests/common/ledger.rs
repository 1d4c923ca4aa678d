//! A store that keeps a book of each byte.

use hyperslab_layout::Object;
use hyperslab_pack::for_each_run;
use hyperslab_world::{Fault, Moves, Outcome, Request, Root, Store, Ticket};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// How often bytes were moved.
#[derive(Default, Debug)]
pub(crate) struct Book {
    /// Per object, how often each byte was read in parts, and how often written in parts.
    pub(crate) read: BTreeMap<String, Vec<u32>>,
    pub(crate) written: BTreeMap<String, Vec<u32>>,
    /// How often objects were read and written whole.
    pub(crate) read_whole: BTreeMap<String, u32>,
    pub(crate) written_whole: BTreeMap<String, u32>,
    /// Requests that read or write.
    pub(crate) requests: u64,
}

impl Book {
    /// Bytes read, and written, in parts.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let sum = |all: &BTreeMap<String, Vec<u32>>| all.values().flatten().map(|&n| u64::from(n)).sum();
        (sum(&self.read), sum(&self.written))
    }
}

fn count(bytes: &mut Vec<u32>, moves: &Moves) {
    for nest in moves.nests() {
        for_each_run(&nest, moves.there.element.bytes(), |_, offset, length| {
            let end = (offset as u64 + length) as usize;
            bytes.resize(bytes.len().max(end), 0);
            bytes[offset as usize..end].iter_mut().for_each(|times| *times += 1);
        });
    }
}

/// Writes down what is asked of a store; all ranks write into one book.
pub(crate) struct Ledger<S> {
    inner: S,
    book: Rc<RefCell<Book>>,
}

impl<S> Ledger<S> {
    pub(crate) fn new(inner: S, book: &Rc<RefCell<Book>>) -> Ledger<S> {
        Ledger { inner, book: book.clone() }
    }
}

impl<S: Store> Store for Ledger<S> {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        let mut book = self.book.borrow_mut();
        book.requests += u64::from(!matches!(request, Request::Sync { .. }));
        let roots = self.inner.roots();
        let name = |object: &Object| Root::full_of(&roots, object);
        match &request {
            Request::Read { object, moves, .. } | Request::ReadPart { object, moves, .. } => {
                count(book.read.entry(name(object)).or_default(), moves)
            }
            Request::Write { object, moves, .. } => count(book.written.entry(name(object)).or_default(), moves),
            Request::ReadWhole { object, .. } | Request::Get { object, .. } => {
                *book.read_whole.entry(name(object)).or_default() += 1;
            }
            Request::WriteWhole { object, .. } | Request::Put { object, .. } => {
                *book.written_whole.entry(name(object)).or_default() += 1;
            }
            Request::Sync { .. } => {}
        }
        drop(book);
        self.inner.submit(ticket, request);
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Outcome, Fault>)>) {
        self.inner.poll(done);
    }

    fn advance(&self) -> u64 {
        self.inner.advance()
    }

    fn enter(&mut self, roots: Arc<[Root]>) {
        self.inner.enter(roots);
    }

    fn roots(&self) -> Arc<[Root]> {
        self.inner.roots()
    }

    fn release(&mut self) {
        self.inner.release();
    }

    fn cut(&mut self) {
        self.inner.cut();
    }
}
