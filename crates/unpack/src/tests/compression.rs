//! Compressed data: members, frames, padding and checksums.

use super::*;

#[test]
fn concatenated_members_are_one_archive() {
    let plain = sample();
    let (front, back) = plain.split_at(700);
    for (kind, pack) in [
        (GZIP, gzip as fn(&[u8]) -> Vec<u8>),
        (ArchiveFormat::Tar(Compression::Bzip2), bzip2),
        (ArchiveFormat::Tar(Compression::Zstd), zstd),
    ] {
        let scratch = Scratch::new();
        let mut bytes = pack(front);
        if kind == ArchiveFormat::Tar(Compression::Zstd) {
            // A frame that is to be skipped.
            bytes.extend([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        }
        bytes.extend(pack(back));
        is_sample(&scratch, &unpack(&scratch, &bytes, kind, &rules()).unwrap());
    }
}

#[test]
fn zeros_after_compressed_data_are_padding_and_other_bytes_are_rejected() {
    let scratch = Scratch::new();
    let mut padded = gzip(&sample());
    padded.resize(padded.len() + 300_000, 0);
    let extracted = unpack(&scratch, &padded, GZIP, &rules()).unwrap();
    is_sample(&scratch, &extracted);
    padded.push(1);
    damaged(&padded, GZIP);
    let mut followed = gzip(&sample());
    followed.push(b'x');
    damaged(&followed, GZIP);
    let mut after = gzip(&sample());
    after.push(0);
    after.extend(gzip(&sample()));
    damaged(&after, GZIP);
}

#[test]
fn zstd_frame_with_a_wrong_checksum_is_rejected() {
    // Too random to be compressed, so that a wrong byte of content is decoded without complaint.
    let mut seed = 1_u64;
    let mut noise = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 56) as u8
    };
    let content: Vec<u8> = (0..100_000).map(|_| noise()).collect();
    let kind = ArchiveFormat::Tar(Compression::Zstd);
    let good = zstd(&tar([entry(EntryType::Regular, "a").content(content)]));
    unpack(&Scratch::new(), &good, kind, &rules()).unwrap();
    for at in [good.len() / 2, good.len() - 4, good.len() - 3, good.len() - 2, good.len() - 1] {
        let mut wrong = good.clone();
        wrong[at] ^= 1;
        damaged(&wrong, kind);
    }
}

#[test]
fn skippable_zstd_frame_must_be_complete() {
    let kind = ArchiveFormat::Tar(Compression::Zstd);
    let after = |bytes: &[u8]| [&zstd(&sample())[..], bytes].concat();
    let frame = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    unpack(&Scratch::new(), &after(&frame), kind, &rules()).unwrap();
    for cut in [1, 7, 8, 10] {
        damaged(&after(&frame[..cut]), kind);
    }
    let mut other = frame;
    other[3] = 0x19;
    damaged(&after(&other), kind);
}
