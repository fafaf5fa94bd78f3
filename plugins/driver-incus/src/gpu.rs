//! GPUs, by their addresses on the PCI bus, such as `0000:01:00.0`.

/// `DOMAIN:BUS:DEVICE.FUNCTION` in lower-case hexadecimal digits, as Incus lists it.
pub fn is_address(device: &str) -> bool {
    let Some((place, function)) = device.split_once('.') else {
        return false;
    };
    let hex = |part: &str, length: usize| {
        part.len() == length
            && part
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let mut parts = place.split(':');
    let wanted = [4, 2, 2]
        .iter()
        .all(|length| parts.next().is_some_and(|part| hex(part, *length)));
    wanted && parts.next().is_none() && hex(function, 1)
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn a_device_is_a_whole_address() {
        assert!(is_address("0000:01:00.0") && is_address("10de:af:1f.7"));
        for wrong in [
            "01:00.0",
            "0000:01:00",
            "0000:01:00.00",
            "nvidia.com/gpu=0",
            "0000:01:00:1.0",
        ] {
            assert!(!is_address(wrong), "{wrong}");
        }
    }
}
