//! A class of `htb`: its two buckets, its place in the tree, and the queue of a leaf.

use super::params::{MAX_LEVEL, PRIORITIES, Params};
use crate::base::units::Time;
use crate::packet::Packet;
use crate::qdisc::ratecfg::SendTime;
use crate::qdisc::{Env, Queue};
use bakeoff_document::run;
use bakeoff_document::tc::{TcError, Words, parse_minor};

/// No bucket is deeper in debt than this, in nanoseconds, and no idle time counts for more.
const MBUFFER: i64 = 60_000_000_000;

/// What a class may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Above its ceiling.
    CannotSend,
    /// Above its rate: only if an ancestor lends.
    MayBorrow,
    /// Below its rate.
    CanSend,
}

/// The place of the class to serve next in a round: the first member at or behind it; none begins at the front.
pub type Turn = Option<usize>;

/// What a class may still send.
#[derive(Clone, Debug)]
pub struct Buckets {
    /// Bucket of the rate, in nanoseconds of sending.
    tokens: i64,
    /// Bucket of the ceiling.
    ctokens: i64,
    /// When the buckets were last brought up to date.
    checkpoint: Time,
    /// When the bucket of the rate is out of debt, and that of the ceiling.
    rate_at: Time,
    ceil_at: Time,
}

impl Buckets {
    fn full(params: &Params) -> Buckets {
        let (tokens, ctokens) = (params.buffer, params.cbuffer);
        Buckets { tokens, ctokens, checkpoint: Time::ZERO, rate_at: Time::ZERO, ceil_at: Time::ZERO }
    }

    /// When both are out of debt.
    #[inline]
    pub fn wake(&self) -> Time {
        self.rate_at.max(self.ceil_at)
    }

    /// Takes out what was sent; a class that `borrows` keeps its own rate's. Whether that of the ceiling is in debt now.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub fn charge(&mut self, params: &Params, len: u32, now: Time, borrows: bool) -> bool {
        let idle = ((now - self.checkpoint).as_ns().cast_signed()).min(MBUFFER);
        let bytes = params.frame.bytes(len);
        let spend = |tokens: i64, buffer: i64, rate: SendTime| {
            let tokens = (tokens + idle).min(buffer) - rate.ns(bytes);
            tokens.max(1 - MBUFFER)
        };
        // A class with one rate has two buckets that hold the same.
        let one_bucket = params.ceil_is_rate && self.tokens == self.ctokens && !borrows;
        self.tokens =
            if borrows { self.tokens + idle } else { spend(self.tokens, params.buffer, params.rate) };
        self.ctokens =
            if one_bucket { self.tokens } else { spend(self.ctokens, params.cbuffer, params.ceil) };
        self.checkpoint = now;
        let out_of_debt = |tokens: i64| now + Time((-tokens).max(0).cast_unsigned());
        self.rate_at = out_of_debt(self.tokens);
        self.ceil_at = out_of_debt(self.ctokens);
        self.ctokens < 0
    }
}

pub struct Class {
    pub minor: u32,
    /// As the document writes it.
    pub id: String,
    pub params: Params,
    /// Place of the class that it borrows from.
    pub parent: Option<usize>,
    /// 0 of a leaf; 7 of an inner class below the root, one less for each class above it.
    pub level: usize,
    pub buckets: Buckets,
    /// What it has left of its quantum, by the level at which it was served.
    pub deficit: [i64; MAX_LEVEL + 1],
    /// An inner class: whose turn it is among those that borrow from it, by priority.
    pub turns: [Turn; PRIORITIES],
    /// The queue of a leaf.
    pub queue: Option<Queue>,
    /// What `queue` last said of itself: asked once after each change, not several times per packet.
    pub qlen: usize,
    /// When `queue` may give a packet.
    ready: Time,
    /// When a class without a parent may send one: never, if it has none.
    pub due: Time,
    /// Bit p: it, or what borrows from it now, has packets of priority p. Brought up to date before each service.
    pub active: u8,
    pub mode: Mode,
    /// How often it came to its ceiling.
    pub overlimits: u64,
}

impl Class {
    pub fn build(
        spec: &run::Class,
        is_leaf: bool,
        r2q: u32,
        env: &Env,
        words: &Words,
    ) -> Result<Class, TcError> {
        let minor = parse_minor(&spec.id)
            .filter(|minor| *minor > 0)
            .ok_or_else(|| words.refuse("the id is not a hexadecimal number from 1 to ffff"))?;
        let params = Params::parse(&mut Words::new(&spec.class), r2q)?;
        let env = env.child(&spec.id);
        if !is_leaf && (spec.child.is_some() || !spec.filters.is_empty()) {
            return Err(words.refuse("other classes borrow from it: it has neither filters nor child"));
        }
        let pfifo = run::Qdisc::leaf("pfifo");
        let child = spec.child.as_deref().unwrap_or(&pfifo);
        let queue = if is_leaf { Some(Queue::build(child, &env)?) } else { None };
        Ok(Class {
            minor,
            id: spec.id.clone(),
            parent: None,
            level: 0,
            buckets: Buckets::full(&params),
            params,
            deficit: [0; MAX_LEVEL + 1],
            turns: [None; PRIORITIES],
            queue,
            qlen: 0,
            ready: Time::ZERO,
            due: Time::NEVER,
            active: 0,
            mode: Mode::CanSend,
            overlimits: 0,
        })
    }

    /// Asks the queue again, after anything that may have changed it.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub fn note(&mut self) {
        if let Some(queue) = &self.queue {
            self.qlen = queue.qlen();
            self.ready = queue.next_event().unwrap_or(Time::ZERO);
            self.set_due();
        }
    }

    #[inline]
    fn set_due(&mut self) {
        self.due = if self.qlen == 0 { Time::NEVER } else { self.wake().max(self.ready) };
    }

    /// When this class alone may send by itself.
    #[inline]
    pub fn wake(&self) -> Time {
        self.buckets.wake()
    }

    pub fn mode_at(&self, now: Time) -> Mode {
        if now < self.buckets.ceil_at {
            Mode::CannotSend
        } else if now < self.buckets.rate_at {
            Mode::MayBorrow
        } else {
            Mode::CanSend
        }
    }

    /// When a leaf with packets may give one: it, or the first ancestor that lends, is below its rate, and all on the
    /// way are below their ceilings.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub fn next(&self, classes: &[Class]) -> Option<Time> {
        if self.qlen == 0 {
            return None;
        }
        let mut ceilings = self.buckets.ceil_at;
        let mut first = ceilings.max(self.buckets.rate_at);
        let mut above = self.parent;
        while let Some(at) = above {
            let class = &classes[at];
            ceilings = ceilings.max(class.buckets.ceil_at);
            first = first.min(ceilings.max(class.buckets.rate_at));
            above = class.parent;
        }
        Some(first.max(self.ready))
    }

    /// Takes a packet of a leaf, if its queue gives one.
    pub fn dequeue(&mut self, now: Time) -> Option<Packet> {
        let packet = self.queue.as_mut()?.dequeue(now);
        self.note();
        packet
    }

    /// Takes a packet of a leaf without a parent, to where it shall lie, and pays for it; false if its queue gives none.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub fn send(&mut self, into: &mut Packet, now: Time) -> bool {
        let Some(queue) = &mut self.queue else { return false };
        let gave = queue.dequeue_into(into, now);
        (self.qlen, self.ready) = (queue.qlen(), queue.next_event().unwrap_or(Time::ZERO));
        if gave {
            self.charge(into.len, now, false);
        } else {
            self.set_due();
        }
        gave
    }

    /// Takes what was sent out of the buckets; a class that did not pay for it (`lent` to it) keeps its own rate's.
    #[expect(clippy::inline_always, reason = "part of one hop: the calls cost as much as what they do")]
    #[inline(always)]
    pub fn charge(&mut self, len: u32, now: Time, borrows: bool) {
        self.overlimits += u64::from(self.buckets.charge(&self.params, len, now, borrows));
        self.set_due();
    }

    /// The class as `tc -d class show` words it.
    pub fn show(&self, classes: &[Class]) -> String {
        let params = &self.params;
        let place = match self.parent {
            Some(at) => format!("parent 1:{:x}", classes[at].minor),
            None => "root".into(),
        };
        let leaf = match self.queue {
            Some(_) => format!(" prio {} quantum {}", params.prio, params.quantum),
            None => String::new(),
        };
        let overhead = match params.frame.overhead {
            0 => String::new(),
            bytes => format!(" overhead {bytes}"),
        };
        let mpu = bakeoff_document::tc::show::size(u64::from(params.frame.mpu));
        format!(
            "class htb 1:{:x} {place}{leaf} rate {}{overhead} ceil {} linklayer {} burst {}/1mpu {mpu} cburst {}/1mpu \
             {mpu} level {}",
            self.minor,
            params.rate.show(),
            params.ceil.show(),
            params.frame.linklayer(),
            params.rate.show_burst(params.buffer),
            params.ceil.show_burst(params.cbuffer),
            self.level,
        )
    }
}
