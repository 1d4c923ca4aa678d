//! What ranks found goes to the ranks that want it: counts first, then the bytes. No storage is touched.

use hyperslab_layout::{IndexSet, Region};
use hyperslab_pack::Memory;
use hyperslab_plan::{Parcel, Told, delivering, parcel_view};
use hyperslab_walk::{Awaited, Compared, Consensus, Party, Question, Telling, Waits, Walk, Walked};
use hyperslab_world::{Exposed, Fault, FaultKind, World};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes with the rank that they are for, or from.
pub type Packets = Vec<(u32, Vec<u8>)>;

/// A call in which each rank has packets for some others, at most one for each. All ranks make it, and get what is for them in
/// the order of those that sent it.
pub struct Delivery {
    what: String,
    question: Option<Question>,
    packets: Packets,
    stage: DeliveryStage,
    /// Memory of what is received, by its sender.
    received: Vec<(u32, Memory)>,
    own: Option<Vec<u8>>,
    sent: Vec<(u32, Exposed)>,
}

enum DeliveryStage {
    New,
    Opening(Consensus),
    /// This rank tells how many bytes it has for whom.
    Telling(Telling),
    /// All have told.
    Told(Consensus, Telling),
    Walking(Walk),
    Closing(Consensus),
    Over,
}

impl Delivery {
    /// A delivery of these packets, or of nothing where this rank has failed.
    pub fn new(what: &str, compared: Compared, packets: Result<Packets, Fault>) -> Delivery {
        let (packets, fault) = match packets {
            Ok(packets) => (packets, None),
            Err(fault) => (Vec::new(), Some(fault.context(what))),
        };
        let question = Some(Question::opening(what, compared, fault));
        let (received, own, sent) = Default::default();
        Delivery { what: what.into(), question, packets, stage: DeliveryStage::New, received, own, sent }
    }

    /// Continues; gives what is for this rank once it is over. A failure is the same on all ranks.
    pub fn poll(&mut self, world: &mut dyn World, party: &mut Party) -> Option<Result<Packets, Fault>> {
        let nothing = &mut || Ok(Vec::new());
        loop {
            let next = match std::mem::replace(&mut self.stage, DeliveryStage::Over) {
                DeliveryStage::New => {
                    let question = self.question.take().unwrap_or_default();
                    party.open(question).map(DeliveryStage::Opening)
                }
                DeliveryStage::Opening(mut consensus) => match consensus.poll(world, party, nothing) {
                    Some(opened) => opened.map(|_| self.tell(world, party)),
                    None => return self.waits_on(DeliveryStage::Opening(consensus)),
                },
                DeliveryStage::Telling(mut telling) => match telling.poll(party) {
                    true => party.open(self.question(None)).map(|consensus| DeliveryStage::Told(consensus, telling)),
                    false => return self.waits_on(DeliveryStage::Telling(telling)),
                },
                DeliveryStage::Told(mut consensus, telling) => match consensus.poll(world, party, nothing) {
                    Some(told) => told.and_then(|_| self.walk(world, party, telling)),
                    None => return self.waits_on(DeliveryStage::Told(consensus, telling)),
                },
                DeliveryStage::Walking(mut walk) => match walk.poll(world, party) {
                    Some(walked) => {
                        let fault = walked.err().map(|fault| fault.context(&self.what));
                        party.open(self.question(fault)).map(DeliveryStage::Closing)
                    }
                    None => return self.waits_on(DeliveryStage::Walking(walk)),
                },
                DeliveryStage::Closing(mut consensus) => match consensus.poll(world, party, nothing) {
                    Some(closed) => return Some(closed.map(|_| self.taken(party.rank()))),
                    None => return self.waits_on(DeliveryStage::Closing(consensus)),
                },
                DeliveryStage::Over => return None,
            };
            match next {
                Ok(stage) => self.stage = stage,
                Err(fault) => return Some(Err(fault)),
            }
        }
    }

    /// What this rank has done so far.
    pub fn walked(&self) -> Walked {
        if let DeliveryStage::Walking(walk) = &self.stage { walk.walked() } else { Walked::default() }
    }

    fn question(&self, fault: Option<Fault>) -> Question {
        Question { what: self.what.clone(), fault, ..Question::default() }
    }

    fn waits_on<T>(&mut self, stage: DeliveryStage) -> Option<T> {
        self.stage = stage;
        None
    }

    /// Exposes what this rank sends, and says how much that is.
    fn tell(&mut self, world: &mut dyn World, party: &mut Party) -> DeliveryStage {
        let mut told = BTreeMap::<u32, Told>::new();
        for (to, bytes) in std::mem::take(&mut self.packets) {
            if to == party.rank() {
                self.own = Some(bytes);
            } else if !bytes.is_empty() {
                let count = bytes.len() as u64;
                let region = Region { dims: [IndexSet::range(0, count)].into_iter().collect() };
                told.insert(to, vec![(0, self.sent.len() as u32, region)]);
                let view = Arc::new(parcel_view(count));
                self.sent.push((to, Exposed { memory: Memory::from_vec(bytes), view }));
            }
        }
        party.begin_part();
        DeliveryStage::Telling(Telling::new(world, party, told))
    }

    /// Makes room for what others have for this rank, and moves all.
    fn walk(&mut self, world: &mut dyn World, party: &mut Party, telling: Telling) -> Result<DeliveryStage, Fault> {
        let all = telling.heard(party).map_err(|fault| party.abandon(world, fault))?;
        let mut users: Vec<Exposed> = self.sent.iter().map(|(_, exposed)| exposed.clone()).collect();
        let parcel = |(number, (peer, exposed)): (usize, &(u32, Exposed))| {
            let (sent, bytes) = (number as u32, exposed.memory.bytes());
            Parcel { peer: *peer, sent, received: 0, bytes }
        };
        let sent: Vec<Parcel> = self.sent.iter().enumerate().map(parcel).collect();
        let mut received = Vec::new();
        for (peer, told) in all {
            for (_, exposed, region) in told {
                let bytes = region.dims.first().map_or(0, IndexSet::len);
                // What others send cannot be refused any more: they wait until it has been taken.
                let memory = Memory::for_vec(bytes).map_err(|_| {
                    let fault = Fault::no_memory(format_args!("{bytes} B from rank {peer}")).context(&self.what);
                    party.abandon(world, fault)
                })?;
                received.push(Parcel { peer, sent: exposed, received: users.len() as u32, bytes });
                users.push(Exposed { memory: memory.clone(), view: Arc::new(parcel_view(bytes)) });
                self.received.push((peer, memory));
            }
        }
        party.begin_part();
        let program = delivering((party.rank(), party.size()), sent, received);
        Ok(DeliveryStage::Walking(Walk::new(program, users).at(party.pace)))
    }

    /// What this rank was sent, in the order of the senders.
    fn taken(&mut self, rank: u32) -> Packets {
        self.sent.clear();
        let received = std::mem::take(&mut self.received).into_iter();
        let mut all: Packets = received.map(|(from, memory)| (from, memory.into_vec())).collect();
        all.extend(self.own.take().map(|own| (rank, own)));
        all.sort_by_key(|packet| packet.0);
        all
    }
}

impl Awaited for Delivery {
    fn waits(&self) -> Waits {
        match &self.stage {
            DeliveryStage::Opening(consensus)
            | DeliveryStage::Told(consensus, _)
            | DeliveryStage::Closing(consensus) => consensus.waits(),
            DeliveryStage::Walking(walk) => walk.waits(),
            DeliveryStage::New | DeliveryStage::Telling(_) | DeliveryStage::Over => Waits::default(),
        }
    }

    fn waits_for(&self) -> String {
        let of_call = |text: String| format!("{}: {text}", self.what);
        match &self.stage {
            DeliveryStage::Opening(consensus)
            | DeliveryStage::Told(consensus, _)
            | DeliveryStage::Closing(consensus) => consensus.waits_for(),
            DeliveryStage::Telling(telling) => of_call(telling.waits_for()),
            DeliveryStage::Walking(walk) => of_call(walk.waits_for()),
            DeliveryStage::New | DeliveryStage::Over => String::new(),
        }
    }
}

/// That packets cannot be delivered among ranks that others serve.
pub fn undelivered(what: &str, why: &str) -> Fault {
    Fault::new(FaultKind::Unsupported, format!("values cannot travel between ranks here: {why}")).context(what)
}
