//! No qdisc creates or loses packets: enqueued = sent + dropped + standing, in packets and bytes,
//! after every step of any sequence; and what the queue says to hold can be taken out.

use proptest::prelude::*;

use super::{Env, Queue};
use crate::packet::{Ecn, Packet};
use crate::run;
use crate::units::Time;

const LINES: &[&str] = &[
    "pie limit 30 target 1ms tupdate 4ms alpha 32 beta 32 ecn",
    "pie limit 30 target 1ms tupdate 4ms dq_rate_estimator bytemode",
    "pie@5.4 limit 30 target 1ms tupdate 4ms ecn",
    "red limit 40000 avpkt 1000 adaptive ecn",
    "red limit 40000 avpkt 1000 probability 0.5",
    "dualpi2 limit 30 target 1ms tupdate 1ms alpha 100 beta 1000",
    "dualpi2 limit 30 overflow drop_enqueue target 1ms any_ect memlimit 20000",
    "dualpi2@2020 limit 30 target 1ms tupdate 1ms alpha 100 beta 1000",
    "dualpi2@2019 limit 30 target 1ms tupdate 4ms step_thresh 3p",
    "cnq_codel_af bandwidth 10mbit rtt 1ms",
    "cnq_codel_af bandwidth 1mbit sce-thresh 4",
];

#[derive(Clone, Copy, Debug)]
enum Step {
    Enqueue { len: u32, hash: u32, ecn: u8 },
    Dequeue,
    Wait { us: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![Just(1514), Just(66), 42..1514_u32];
    prop_oneof![
        5 => (len, 0..5_u32, 0..4_u8).prop_map(|(len, hash, ecn)| Step::Enqueue { len, hash, ecn }),
        4 => Just(Step::Dequeue),
        2 => prop_oneof![1..2_000_u64, 1..1_000_000_u64].prop_map(|us| Step::Wait { us }),
    ]
}

fn conserved(q: &Queue) {
    let tally = &q.tally;
    assert_eq!(
        tally.enqueued,
        tally.sent + tally.dropped() + q.qlen() as u64
    );
    assert_eq!(
        tally.enqueued_bytes,
        tally.sent_bytes + tally.dropped_bytes + q.backlog()
    );
}

proptest! {
    #[test]
    fn packets_and_bytes_are_conserved(steps in prop::collection::vec(step(), 1..400)) {
        for line in LINES {
            let mut q = Queue::build(&run::Qdisc::leaf(line), &Env::default()).unwrap();
            let mut now = Time::ZERO;
            for step in &steps {
                match *step {
                    Step::Enqueue { len, hash, ecn } => {
                        let packet = Packet { len, hash, ecn: Ecn::from_bits(ecn), ..Packet::default() };
                        q.enqueue(packet, now);
                    }
                    Step::Dequeue => { q.dequeue(now); }
                    Step::Wait { us } => now += Time::from_us(us),
                }
                conserved(&q);
            }
            while q.qlen() > 0 {
                now = q.next_event().map_or(now, |at| at.max(now));
                q.dequeue(now);
                conserved(&q);
            }
            prop_assert_eq!(q.backlog(), 0);
        }
    }
}
