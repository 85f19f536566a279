//! Every function of expressions in words, for help and the reference. A test compares the list with the functions.

use std::fmt::Write;

/// Functions of one kind: how each is called, and what it gives.
type Group = (&'static str, &'static [(&'static str, &'static str)]);

/// All functions.
pub(crate) const GROUPS: &[Group] = &[
    (
        "Of ccm",
        &[
            ("lookup(path[, default])", "What a GJSON path leads to in `facts`, `data` and `environ`."),
            ("file(path)", "The text of a file; in properties of resources only."),
            ("readFile(path)", "The same."),
            ("age(path)", "The text of a file in age format, decrypted; in properties only."),
            ("template(file-or-text)", "A file or text with its expressions expanded; in properties only."),
            ("jinja(file-or-text)", "A file or text in the language of Jinja, rendered; in properties only."),
            ("versionCompare(a, b)", "-1, 0 or 1: which version is the older one."),
            ("kvGet(bucket, key[, default])", "What a key of a NATS bucket holds; in properties only."),
            (
                "registrations([cluster[, protocol[, service[, address]]]])",
                "Services that are registered in a fleet; `\"\"` and `*` stand for all; in properties only.",
            ),
            (
                "prometheusFileSD(list)",
                "What `registrations` gives, as targets for Prometheus; also `list.PrometheusFileSD()`.",
            ),
        ],
    ),
    (
        "Of rules about data (`@validate`); also as `is_ip` and so on",
        &[
            ("isIP(value)", "Whether it is an address of IPv4 or IPv6."),
            ("isIPv4(value)", "Whether it is an address of IPv4."),
            ("isIPv6(value)", "Whether it is an address of IPv6."),
            ("isInt(value)", "Whether it is a whole number."),
            ("isFloat(value)", "Whether it is a number."),
            ("isDuration(value)", "Whether it is a duration such as `1h30m`."),
            ("isRegex(value, pattern)", "Whether a regular expression matches it."),
            ("isShellSafe(value)", "Whether no character in it means anything to a shell."),
            ("isHostname(value)", "Whether it is the name of a host."),
            ("isFQDN(value)", "Whether it is a name with a domain."),
        ],
    ),
    (
        "On text",
        &[
            ("trim(text[, letters])", "Without blanks, or these letters, at both ends."),
            ("trimPrefix(text[, start])", "Without this at its beginning."),
            ("trimSuffix(text[, end])", "Without this at its end."),
            ("upper(text)", "In upper case."),
            ("lower(text)", "In lower case."),
            ("split(text, by[, most])", "The parts between separators."),
            ("splitAfter(text, by[, most])", "The same with the separators."),
            ("replace(text, old, new[, most])", "With one text in the place of another."),
            ("repeat(text, times)", "The text that many times."),
            ("join(list[, by])", "All items in one text."),
            ("indexOf(text, part)", "Where it is first found; -1 if nowhere."),
            ("lastIndexOf(text, part)", "Where it is last found; -1 if nowhere."),
            ("hasPrefix(text, start)", "Whether it begins so."),
            ("hasSuffix(text, end)", "Whether it ends so."),
        ],
    ),
    (
        "On lists, with a condition or expression in which `#` is the item",
        &[
            ("all(list, condition)", "Whether it holds for all items."),
            ("any(list, condition)", "Whether it holds for one or more."),
            ("none(list, condition)", "Whether it holds for none."),
            ("one(list, condition)", "Whether it holds for exactly one."),
            ("filter(list, condition)", "The items for which it holds."),
            ("map(list, expression)", "What the expression gives for each item."),
            ("find(list, condition)", "The first item for which it holds."),
            ("findIndex(list, condition)", "The place of that."),
            ("findLast(list, condition)", "The last item for which it holds."),
            ("findLastIndex(list, condition)", "The place of that."),
            ("count(list[, condition])", "For how many it holds."),
            ("sum(list[, expression])", "The sum."),
            ("groupBy(list, expression)", "Items under what the expression gives for them."),
            ("sortBy(list, expression[, order])", "Sorted by what it gives; `\"desc\"` for downwards."),
            ("reduce(list, expression[, start])", "Items taken together, one by one, in `#acc`."),
        ],
    ),
    (
        "On lists and maps",
        &[
            ("len(value)", "How many items, or characters of a text."),
            ("first(list)", "The first item."),
            ("last(list)", "The last item."),
            ("take(list, count)", "The first items."),
            ("reverse(list)", "The items backwards."),
            ("sort(list[, order])", "Sorted; `\"desc\"` for downwards."),
            ("uniq(list)", "Each item once."),
            ("concat(list, ...)", "Lists one after the other."),
            ("flatten(list)", "Without lists in it: their items instead."),
            ("keys(map)", "The names."),
            ("values(map)", "The values."),
            ("toPairs(map)", "Lists of name and value."),
            ("fromPairs(list)", "A map from such lists."),
            ("get(value, key)", "A member; nil if there is none."),
        ],
    ),
    (
        "On numbers",
        &[
            ("abs(number)", "Without its sign."),
            ("ceil(number)", "The next whole number above."),
            ("floor(number)", "The next whole number below."),
            ("round(number)", "The nearest whole number."),
            ("max(number, ...)", "The largest, also of a list."),
            ("min(number, ...)", "The smallest, also of a list."),
            ("mean(number, ...)", "The average, also of a list."),
            ("median(number, ...)", "The one in the middle, also of a list."),
            ("bitand(a, b)", "Bits that both have."),
            ("bitor(a, b)", "Bits that one of them has."),
            ("bitxor(a, b)", "Bits that only one of them has."),
            ("bitnand(a, b)", "Bits of the first that the second does not have."),
            ("bitnot(number)", "The other bits."),
            ("bitshl(number, by)", "Bits moved up."),
            ("bitshr(number, by)", "Bits moved down, with the sign."),
            ("bitushr(number, by)", "Bits moved down, without it."),
        ],
    ),
    (
        "On time",
        &[
            ("now()", "The present moment."),
            ("duration(text)", "A duration from text such as `1h30m`."),
            ("date(text[, format[, zone]])", "A moment from text."),
            ("timezone(name)", "A time zone such as `UTC` or `Europe/Vienna`."),
        ],
    ),
    (
        "On types",
        &[
            ("type(value)", "The name of its type."),
            ("int(value)", "As a whole number."),
            ("float(value)", "As a number with a fraction."),
            ("string(value)", "As text."),
            ("toJSON(value)", "As JSON."),
            ("fromJSON(text)", "The value of JSON."),
            ("toBase64(text)", "In base64."),
            ("fromBase64(text)", "The text of base64."),
        ],
    ),
];

/// Returns the list for `ccm eval --help`.
pub(crate) fn help() -> String {
    let mut text = "Functions:".to_owned();
    for (title, functions) in GROUPS {
        let _ = write!(text, "\n\n{title}:");
        for (call, meaning) in *functions {
            let _ = write!(text, "\n  {call}\n          {meaning}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{functions::FOR_RULES, scope::FUNCTIONS};

    #[test]
    fn every_function_is_listed_and_every_one_that_is_listed_exists() {
        let is_other_spelling = |name: &str| name.contains('_');
        let mut known: Vec<&str> = ccm_expr::function_names()
            .chain(FUNCTIONS.iter().copied())
            .chain(FOR_RULES.iter().copied())
            .collect();
        known.retain(|name| !is_other_spelling(name));
        known.sort_unstable();
        known.dedup();
        let calls = GROUPS.iter().flat_map(|(_, functions)| functions.iter());
        let mut listed: Vec<&str> = calls.filter_map(|(call, _)| call.split('(').next()).collect();
        listed.sort_unstable();
        assert_eq!(listed, known);
    }
}
