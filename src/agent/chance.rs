//! Random lengths of time, so that a fleet does not act in one instant.

use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};

/// Returns a random length of time from nothing to `most`.
pub(crate) fn up_to(most: Duration) -> Duration {
    most.mul_f64(fraction())
}

/// Returns about this length of time: up to a tenth more or less.
pub(crate) fn jittered(around: Duration) -> Duration {
    around.mul_f64(0.9 + fraction() / 5.0)
}

/// Returns a number from 0 to 1.
fn fraction() -> f64 {
    let mut bytes = [0; 4];
    // Before the kernel has gathered enough, anything will do.
    let _ = getrandom(&mut bytes, GetRandomFlags::NONBLOCK);
    f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_times_stay_within_their_bounds() {
        for _ in 0..1000 {
            assert!(up_to(Duration::from_secs(2)) <= Duration::from_secs(2));
            let jittered = jittered(Duration::from_secs(30));
            assert!((Duration::from_secs(27)..=Duration::from_secs(33)).contains(&jittered), "{jittered:?}");
        }
        assert_eq!(up_to(Duration::ZERO), Duration::ZERO);
    }
}
