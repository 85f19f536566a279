//! Shamir's secret sharing over GF(2^8), as documents with several key groups use it.
//!
//! Each part is a share of every byte of the data key, followed by the x coordinate of the share.

use zeroize::Zeroizing;

use super::value::{DataKey, KEY_LENGTH, RandomError, random};

/// A share of a data key.
pub(crate) type Part = Zeroizing<Vec<u8>>;

/// Splits a data key into parts, any `threshold` of which give it back.
pub(crate) fn split(key: &DataKey, parts: u8, threshold: u8) -> Result<Vec<Part>, RandomError> {
    let mut shares: Vec<Part> =
        (0..parts).map(|_| Zeroizing::new(Vec::with_capacity(KEY_LENGTH + 1))).collect();
    for byte in key.iter() {
        let random: Zeroizing<[u8; 255]> = Zeroizing::new(random()?);
        let coefficients = &random[..usize::from(threshold.saturating_sub(1))];
        for (x, share) in (1..=parts).zip(&mut shares) {
            // Horner's scheme; the constant term is the byte of the key.
            let high = coefficients.iter().fold(0, |sum, coefficient| multiply(sum ^ coefficient, x));
            share.push(high ^ byte);
        }
    }
    for (x, share) in (1..=parts).zip(&mut shares) {
        share.push(x);
    }
    Ok(shares)
}

/// Returns the data key of which these are parts; `None` if they are not parts of one key.
pub(crate) fn combine(parts: &[Part]) -> Option<DataKey> {
    let mut points = Vec::new();
    for part in parts {
        let (x, shares) = part.split_last()?;
        let is_new = *x != 0 && points.iter().all(|(other, _)| other != x);
        if !is_new || shares.len() != KEY_LENGTH {
            return None;
        }
        points.push((*x, shares));
    }
    let mut key = Zeroizing::new([0; KEY_LENGTH]);
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = points.iter().fold(0, |sum, (x, shares)| {
            let others = points.iter().filter(|(other, _)| other != x);
            let weight = others.fold(1, |weight, (other, _)| multiply(weight, divide(*other, x ^ other)));
            sum ^ multiply(shares[at], weight)
        });
    }
    Some(key)
}

/// Multiplies in the field of AES, in constant time.
fn multiply(a: u8, b: u8) -> u8 {
    let (mut a, mut product) = (a, 0);
    for bit in 0..8 {
        product ^= a & ((b >> bit) & 1).wrapping_neg();
        a = (a << 1) ^ (0x1b & (a >> 7).wrapping_neg());
    }
    product
}

/// Divides: the inverse of `b` is its 254th power.
fn divide(a: u8, b: u8) -> u8 {
    let square = |value| multiply(value, value);
    let inverse = (0..6).fold(b, |power, _| multiply(square(power), b));
    multiply(a, square(inverse))
}

#[cfg(test)]
mod tests {
    use super::{super::value::new_data_key, *};

    #[test]
    fn any_parts_up_to_the_threshold_give_the_key() {
        let key = new_data_key().unwrap();
        let parts = split(&key, 4, 3).unwrap();
        for left_out in 0..4 {
            let some: Vec<Part> = parts
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != left_out)
                .map(|(_, part)| part.clone())
                .collect();
            assert_eq!(*combine(&some).unwrap(), *key);
        }
        assert_ne!(*combine(&parts[..2]).unwrap(), *key, "two of three parts reveal nothing");
    }

    #[test]
    fn parts_that_cannot_belong_together_are_refused() {
        let parts = split(&new_data_key().unwrap(), 2, 2).unwrap();
        assert!(combine(&[parts[0].clone(), parts[0].clone()]).is_none());
        assert!(combine(&[parts[0].clone(), Zeroizing::new(vec![1, 2])]).is_none());
        assert!(combine(&[Zeroizing::new(vec![0; KEY_LENGTH + 1])]).is_none());
    }

    #[test]
    fn division_undoes_multiplication() {
        for a in 1..=255 {
            for b in 1..=255 {
                assert_eq!(divide(multiply(a, b), b), a);
            }
        }
    }
}
