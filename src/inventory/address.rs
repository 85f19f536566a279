//! Host names and addresses as inventories write them: with ranges, and a port after a colon.

/// Splits off a port, if the rest is a host name or an address that Ansible recognizes.
///
/// Anything else is `None`: callers take it for a name as it is.
pub(super) fn parse(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = split_port(text);
    let port = match port {
        Some(digits) => Some(digits.parse().ok()?),
        None => None,
    };
    (is_ipv4(host) || is_ipv6(host) || is_host_name(host)).then_some((host, port))
}

/// Returns the host and the digits of the port: `[HOST]:PORT`, or `HOST:PORT` if the host has no colon outside of a range.
fn split_port(text: &str) -> (&str, Option<&str>) {
    let Some((host, port)) = text.rsplit_once(':') else { return (text, None) };
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return (text, None);
    }
    if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'))
        && !inner.is_empty()
    {
        return (inner, Some(port));
    }
    match units(host) {
        Some(units) if !units.contains(&":") => (host, Some(port)),
        _ => (text, None),
    }
}

/// Splits a text into characters and bracketed ranges. A bracket without its counterpart is `None`.
fn units(text: &str) -> Option<Vec<&str>> {
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '[' => rest.find(']')? + 1,
            ']' => return None,
            other => other.len_utf8(),
        };
        units.push(&rest[..length]);
        rest = &rest[length..];
    }
    Some(units)
}

/// Returns the bounds in a bracketed range: two, and perhaps a step.
fn bounds(unit: &str) -> Option<(&str, &str)> {
    let inner = unit.strip_prefix('[')?.strip_suffix(']')?;
    let mut parts = inner.split(':');
    let (begin, end, step) = (parts.next()?, parts.next()?, parts.next());
    let is_step = step.is_none_or(is_number);
    (is_step && parts.next().is_none()).then_some((begin, end))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hexadecimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_range(unit: &str, is_bound: impl Fn(&str) -> bool) -> bool {
    bounds(unit).is_some_and(|(begin, end)| is_bound(begin) && is_bound(end))
}

fn is_ipv4(text: &str) -> bool {
    let parts: Vec<_> = text.split('.').collect();
    let is_byte =
        |part: &str| is_number(part) && part.len() <= 3 && part.parse::<u16>().is_ok_and(|n| n <= 255);
    parts.len() == 4 && parts.iter().all(|part| is_byte(part) || is_range(part, is_number))
}

fn is_ipv6(text: &str) -> bool {
    // Each range counts as one group of digits.
    let Some(units) = units(text) else { return false };
    let mut plain = String::new();
    for unit in units {
        if unit.starts_with('[') {
            if !is_range(unit, is_hexadecimal) {
                return false;
            }
            plain.push('1');
        } else {
            plain.push_str(unit);
        }
    }
    plain.contains(':') && plain.parse::<std::net::Ipv6Addr>().is_ok()
}

fn is_host_name(text: &str) -> bool {
    let Some(units) = units(text) else { return false };
    units.split(|&unit| unit == ".").all(is_label)
}

/// Returns whether the characters and ranges are one part of a host name: no hyphen at its ends, no underscore at its end.
fn is_label(units: &[&str]) -> bool {
    let is_word = |unit: &str| unit.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_letter = |bound: &str| bound.len() == 1 && bound.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_any_range = |unit: &str| is_range(unit, is_letter) || is_range(unit, is_number);
    let (Some(first), Some(last)) = (units.first(), units.last()) else { return false };
    units.iter().all(|&unit| is_word(unit) || unit == "-" || is_any_range(unit))
        && *first != "-"
        && !["-", "_"].contains(last)
}
