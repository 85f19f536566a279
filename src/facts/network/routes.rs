//! Interfaces of the default routes.

/// Flag of a route that is up.
const UP: u32 = 0x1;
/// Flag of a route that rejects packets.
const REJECT: u32 = 0x200;

/// Parses `/proc/net/route`: interface, destination, gateway, flags, ..., metric and mask.
pub(super) fn default_ipv4(table: &str) -> Option<String> {
    let ways = table.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (interface, destination) = (words.next()?, words.next()?);
        let flags = hexadecimal(words.nth(1)?)?;
        let metric: u32 = words.nth(2)?.parse().ok()?;
        let mask = words.next()?;
        let leads = destination == "00000000" && mask == "00000000" && flags & UP != 0 && flags & REJECT == 0;
        leads.then_some((metric, interface))
    });
    ways.min_by_key(|(metric, _)| *metric).map(|(_, interface)| interface.to_owned())
}

/// Parses `/proc/net/ipv6_route`: destination and prefix length, source and prefix length, next hop, metric, two
/// counters, flags and interface.
pub(super) fn default_ipv6(table: &str) -> Option<String> {
    let ways = table.lines().filter_map(|line| {
        // Skip routes to other destinations quickly: a table can be long.
        let rest = line.strip_prefix("00000000000000000000000000000000 00 ")?;
        let mut words = rest.split_whitespace().skip(3);
        let metric = hexadecimal(words.next()?)?;
        let flags = hexadecimal(words.nth(2)?)?;
        let interface = words.next()?;
        (flags & UP != 0 && flags & REJECT == 0).then_some((metric, interface))
    });
    ways.min_by_key(|(metric, _)| *metric).map(|(_, interface)| interface.to_owned())
}

fn hexadecimal(word: &str) -> Option<u32> {
    u32::from_str_radix(word, 16).ok()
}
