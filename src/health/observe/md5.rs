//! MD5 (RFC 1321), for rules that still name files by it. It protects nothing.

use crate::host::files::hex;

pub(super) struct Md5 {
    state: [u32; 4],
    block: Vec<u8>,
    length: u64,
}

const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

impl Default for Md5 {
    fn default() -> Self {
        let state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
        Self { state, block: Vec::with_capacity(64), length: 0 }
    }
}

impl Md5 {
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        while !bytes.is_empty() {
            let taken = bytes.len().min(64 - self.block.len());
            self.block.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.block.len() == 64 {
                self.mix();
                self.block.clear();
            }
        }
    }

    /// Returns the digest in hexadecimal digits.
    pub(super) fn finish(mut self) -> String {
        let bits = self.length.wrapping_mul(8);
        self.update(&[0x80]);
        while self.block.len() != 56 {
            self.update(&[0]);
        }
        self.update(&bits.to_le_bytes());
        let digest: Vec<u8> = self.state.into_iter().flat_map(u32::to_le_bytes).collect();
        hex(&digest)
    }

    #[allow(
        clippy::many_single_char_names,
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "as the standard has it: the constants are the integer part of a sine"
    )]
    fn mix(&mut self) {
        let words: Vec<u32> = self
            .block
            .chunks(4)
            .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
            .collect();
        let [mut a, mut b, mut c, mut d] = self.state;
        for step in 0..64 {
            let (mixed, word) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), (7 * step) % 16),
            };
            let constant = ((step + 1) as f64).sin().abs() * 4_294_967_296.0;
            let sum = a.wrapping_add(mixed).wrapping_add(constant as u32).wrapping_add(words[word]);
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4]));
        }
        for (state, mixed) in self.state.iter_mut().zip([a, b, c, d]) {
            *state = state.wrapping_add(mixed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        for (text, digest) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            let mut md5 = Md5::default();
            md5.update(text.as_bytes());
            assert_eq!(md5.finish(), digest);
        }
    }
}
