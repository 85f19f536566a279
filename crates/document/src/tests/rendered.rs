//! Problems as people read them.

use super::{problems, source};
use crate::{Colour, Diagnostic, Span, closest, render};

fn rendered(text: &str) -> String {
    render(&problems(text), &source(text), Colour::Off)
}

#[test]
fn a_problem_shows_its_line_and_marks_the_place() {
    assert_eq!(
        format!("\n{}", rendered("a: 1\nb: 'x\n")),
        r"
error[unclosed-quote]: this quote is never closed
 --> site.yaml:2:4
  |
2 | b: 'x
  |    ^
"
    );
}

#[test]
fn a_key_given_twice_shows_both_places() {
    assert_eq!(
        format!("\n{}", rendered("owner: root\nmode: '1'\nowner: app\n")),
        r"
error[duplicate-key]: the key `owner` is given twice
 --> site.yaml:3:1
  |
1 | owner: root
  | ----- first given here
2 | mode: '1'
3 | owner: app
  | ^^^^^ given again
"
    );
}

#[test]
fn places_far_apart_are_shown_apart() {
    let text = format!("owner: root\nfiller: |\n{}owner: app\n", "  some text\n".repeat(8000));
    assert_eq!(
        format!("\n{}", rendered(&text)),
        r"
error[duplicate-key]: the key `owner` is given twice
    --> site.yaml:8003:1
     |
8003 | owner: app
     | ^^^^^ given again
     |
    ::: site.yaml:1:1
     |
   1 | owner: root
     | ----- first given here
"
    );
}

#[test]
fn several_problems_have_a_line_between_them() {
    assert_eq!(
        format!("\n{}", rendered("a: !x 1\nb: !y 2\n")),
        r"
error[unknown-tag]: the tag `!x` is not known here
 --> site.yaml:1:4
  |
1 | a: !x 1
  |    ^^
  |
  = help: quote the value if it is text that begins with `!`, else remove the tag

error[unknown-tag]: the tag `!y` is not known here
 --> site.yaml:2:4
  |
2 | b: !y 2
  |    ^^
  |
  = help: quote the value if it is text that begins with `!`, else remove the tag
"
    );
}

#[test]
fn characters_of_any_width_and_line_end_are_marked_right() {
    assert_eq!(
        format!("\n{}", rendered("\u{feff}\"日本\": é # ü\r\n\"日本\": \tx\r\n")),
        r#"
error[duplicate-key]: the key `日本` is given twice
 --> site.yaml:2:1
  |
1 | "日本": é # ü
  | ------ first given here
2 | "日本":     x
  | ^^^^^^ given again
"#
    );
}

#[test]
fn a_span_of_many_lines_is_marked_on_its_first() {
    let text = "a:\n  b: 1\n  c: 2\n";
    let problem = Diagnostic::error("test", "the key `d` is missing").at(Span { start: 5, end: 16 });
    assert_eq!(
        format!("\n{}", render(&[problem], &source(text), Colour::Off)),
        r"
error[test]: the key `d` is missing
 --> site.yaml:2:3
  |
2 |   b: 1
  |   ^^^^
"
    );
}

#[test]
fn a_problem_without_a_place_is_its_message() {
    let problem = Diagnostic::error("test", "no such file").with_help("create\u{1b}[2J it");
    assert_eq!(
        format!("\n{}", render(&[problem], &source(""), Colour::Off)),
        r"
error[test]: no such file
 |
 = help: create\u{1b}[2J it
"
    );
    assert_eq!(render(&[], &source(""), Colour::Off), "");
}

#[test]
fn of_a_line_without_end_a_piece_is_shown() {
    let text = format!("[{}\"x\" \"y\"{}]", "0, ".repeat(20_000), ", 0".repeat(20_000));
    assert_eq!(
        format!("\n{}", rendered(&text)),
        r#"
error[json-syntax]: expected `,` or `]`
 --> site.yaml:1:60006
  |
1 | …0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "x" "y", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, …
  |                                          ^
"#
    );
    let text = format!("{{\"é\": 1, \"c\": [{}0], \"é\": 2}}", "0, ".repeat(2_000));
    assert_eq!(
        format!("\n{}", rendered(&text)),
        r#"
error[duplicate-key]: the key `é` is given twice
 --> site.yaml:1:6020
  |
1 | …0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "é": 2}
  |                                          ^^^ given again
 ::: site.yaml:1:2
  |
1 | {"é": 1, "c": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,…
  |  --- first given here
"#
    );
    let coloured = render(&problems(&text), &source(&text), Colour::On);
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), rendered(&text));
}

#[test]
fn a_bracket_that_is_still_open_is_shown_where_it_is_on_another_line() {
    let shown = |text| rendered(text).matches("this bracket is not closed yet").count();
    assert!(rendered("a: { b: 1\nc: 2\n").contains("1 | a: { b: 1\n  |    - this bracket is not closed yet"));
    assert_eq!(
        [shown("a: [\n  { b: 1\n]\n"), shown("a: { b: 1 c: 2 }\n"), shown("a: b\n c: d\n")],
        [1, 0, 0]
    );
}

#[test]
fn every_one_of_many_problems_is_rendered() {
    let shown = rendered(&"a: !x 1\n".repeat(500));
    assert_eq!(shown.matches("error[unknown-tag]: the tag").count(), 500);
    assert_eq!(shown.matches("error[duplicate-key]: the key").count(), 499);
}

#[test]
fn many_problems_are_rendered_without_reading_the_text_for_each() {
    // What this thread works, whatever others do meanwhile.
    let work = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        std::time::Duration::try_from(now).unwrap()
    };
    let problem = |line: u32| Diagnostic::error("test", "no").at(Span { start: line * 5, end: line * 5 + 1 });
    let problems: Vec<_> = (0..300).map(problem).collect();
    let text = source(&("a: 1\n".repeat(300) + &"# more\n".repeat(100_000)));
    let took = |problems: &[Diagnostic]| {
        let before = work();
        assert_eq!(render(problems, &text, Colour::Off).matches("error[test]: no").count(), problems.len());
        work().saturating_sub(before)
    };
    // Read for each, it would take hundreds of times as long as for one.
    let ratio = || (took(&problems), took(&problems[..1]));
    assert!((0..5).map(|_| ratio()).any(|(all, one)| all < one * 30), "{:?}", ratio());
}

#[test]
fn nothing_in_a_source_reaches_the_terminal_as_a_control() {
    let shown = rendered("\"a\u{1b}[2J\": !\u{1b}c 1\n\"a\u{1b}[2J\": 1\n");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn the_end_of_the_text_can_be_marked() {
    for text in ["", "a: [", "a: [\n", "é"] {
        let end = u32::try_from(text.len()).unwrap();
        let problem = Diagnostic::error("test", "ends").at(Span { start: end, end: end + 7 });
        let shown = render(&[problem], &source(text), Colour::Off);
        assert!(shown.starts_with("error[test]: ends\n"), "{shown}");
    }
}

#[test]
fn colours_are_there_when_asked_for() {
    let problem = Diagnostic::error("test", "no");
    assert!(render(&[problem], &source(""), Colour::On).contains('\u{1b}'));
}

#[test]
fn the_closest_word_is_one_that_a_typing_mistake_away() {
    let words = ["owner", "group", "mode", "content", "source", "refresh_only"];
    let cases = [
        ("onwer", Some("owner")),
        ("contents", Some("content")),
        ("Mode", Some("mode")),
        ("refreshonly", Some("refresh_only")),
        ("sauce", None),
        ("x", None),
        ("", None),
        ("owner", None),
    ];
    for (word, expected) in cases {
        assert_eq!(closest(word, words), expected, "{word}");
    }
    assert_eq!(closest(&"x".repeat(1 << 20), words), None);
}
