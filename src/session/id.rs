//! Unique ids that sort by the second of their creation (KSUID).

use jiff::Timestamp;

/// Second 0 of the ids, in Unix time.
const EPOCH: i64 = 1_400_000_000;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LENGTH: usize = 27;

/// Generator of ids: four bytes of time and sixteen bytes that begin with a random number and count up, in base 62. The
/// ids that one generator creates within a second therefore sort in the order of their creation.
pub(super) struct Ids {
    next: u128,
}

impl Ids {
    pub(super) fn new() -> Self {
        let mut bytes = [0; 16];
        // After boot, the kernel's generator does not fail for sixteen bytes.
        let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
        // Clearing the highest bit leaves room to count up.
        Self { next: u128::from_be_bytes(bytes) >> 1 }
    }

    /// Creates an id.
    pub(super) fn give(&mut self, now: Timestamp) -> String {
        let mut bytes = [0; 20];
        let seconds = u32::try_from(now.as_second() - EPOCH).unwrap_or_default();
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        bytes[4..].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        encode(bytes)
    }
}

/// Encodes in base 62 by repeated division of the whole number.
fn encode(bytes: [u8; 20]) -> String {
    let mut words: [u32; 5] = std::array::from_fn(|at| {
        u32::from_be_bytes([bytes[at * 4], bytes[at * 4 + 1], bytes[at * 4 + 2], bytes[at * 4 + 3]])
    });
    let mut text = [b'0'; LENGTH];
    for digit in text.iter_mut().rev() {
        let mut rest = 0_u64;
        for word in &mut words {
            let value = (rest << 32) | u64::from(*word);
            *word = u32::try_from(value / 62).unwrap_or_default();
            rest = value % 62;
        }
        *digit = DIGITS[usize::try_from(rest).unwrap_or_default()];
    }
    text.iter().map(|&digit| char::from(digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_ids_are_encoded_as_others_do() {
        assert_eq!(encode([0; 20]), "000000000000000000000000000");
        assert_eq!(encode([255; 20]), "aWgEPTl1tmebfsQzFP4bxwgy80V");
    }

    #[test]
    fn ids_sort_by_time_and_within_a_second_by_order() {
        let mut ids = Ids::new();
        let [earlier, later] = [1_700_000_000, 1_700_000_001].map(|at| Timestamp::from_second(at).unwrap());
        let given = [ids.give(earlier), ids.give(earlier), ids.give(later)];
        assert!(given.is_sorted_by(|a, b| a < b), "{given:?}");
    }

    #[test]
    fn two_sources_give_different_ids() {
        assert_ne!(Ids::new().give(Timestamp::UNIX_EPOCH), Ids::new().give(Timestamp::UNIX_EPOCH));
    }
}
