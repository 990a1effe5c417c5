//! Adds orders up.

/// The price of `n` pieces at `cents` each, less `percent`, rounded half up to the cent.
pub fn total(n: u64, cents: u64, percent: u64) -> u64 {
    (n * cents * (100 - percent) + 50) / 100
}
