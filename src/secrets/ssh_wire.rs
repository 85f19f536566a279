//! The format in which ssh writes keys and signatures: big-endian numbers, and strings with their length in front.

/// Bytes that are taken apart from the front.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

/// The bytes end before the announced length.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Short;

impl<'a> Reader<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Short> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn number(&mut self) -> Result<u32, Short> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_be_bytes(bytes.try_into().map_err(|_| Short)?))
    }

    pub(crate) fn string(&mut self) -> Result<&'a [u8], Short> {
        let length = self.number()?;
        self.bytes(usize::try_from(length).map_err(|_| Short)?)
    }

    /// Takes a number of any length, without the zeros in front of it.
    pub(crate) fn integer(&mut self) -> Result<&'a [u8], Short> {
        let bytes = self.string()?;
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
        Ok(&bytes[start..])
    }
}

/// Appends a string with its length in front.
pub(crate) fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(bytes);
}

/// Appends a positive number of any length.
pub(crate) fn push_integer(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    let bytes = &bytes[start..];
    // A first bit that is set would make it negative.
    let padded: Vec<u8> = bytes
        .first()
        .filter(|first| **first >= 0x80)
        .map(|_| 0)
        .into_iter()
        .chain(bytes.iter().copied())
        .collect();
    push_string(out, &padded);
}
