//! What qdiscs keep for each of 65,536 flows that they tell apart by the packet's hash, of which few ever come.

use crate::packet::Packet;

/// Flows that are told apart.
pub(super) const SLOTS: usize = 65_536;

/// The flow of a packet.
pub(super) fn slot_of(packet: &Packet) -> u16 {
    packet.hash as u16
}

/// A state for each flow. A flow that never came has four bytes here, which are zero: the system gives memory for them
/// only once they are written to.
pub(super) struct Slots<T> {
    /// By flow: the place of its state in `states` plus one, 0 for none.
    places: Box<[u32]>,
    states: Vec<T>,
    new: T,
}

impl<T: Clone> Slots<T> {
    /// The state of a flow that never was used is `new`.
    pub(super) fn new(new: T) -> Self {
        Slots { places: vec![0; SLOTS].into(), states: Vec::new(), new }
    }

    /// The flow's state, which is used from now on.
    pub(super) fn get(&mut self, slot: u16) -> &mut T {
        let place = &mut self.places[usize::from(slot)];
        if *place == 0 {
            self.states.push(self.new.clone());
            *place = self.states.len() as u32;
        }
        &mut self.states[*place as usize - 1]
    }

    /// The flow's state, if it ever was used.
    pub(super) fn used(&mut self, slot: u16) -> Option<&mut T> {
        let place = self.places[usize::from(slot)].checked_sub(1)?;
        self.states.get_mut(place as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flow_has_a_state_of_its_own_once_it_is_used() {
        let mut slots = Slots::new(7);
        assert_eq!([0, 1, u16::MAX].map(|slot| slots.used(slot).copied()), [None; 3]);
        *slots.get(u16::MAX) += 1;
        *slots.get(0) += 2;
        *slots.get(u16::MAX) += 1;
        assert_eq!([0, 1, u16::MAX].map(|slot| slots.used(slot).copied()), [Some(9), None, Some(9)]);
        assert_eq!(*slots.get(1), 7);
        assert!((0..=u16::MAX).all(|slot| *slots.get(slot) >= 7));
        assert_eq!(slots.states.len(), SLOTS);
    }
}
