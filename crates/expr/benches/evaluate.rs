//! What evaluations cost: `cargo bench -p ccm-expr`.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and may panic")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use ccm_expr::{Map, Path, Program, Template, Value, has_template};

fn main() {
    let environment = environment();
    let root = Value::from(environment.clone());

    for code in [
        "Data.x.y",
        "Data.x.y == 1",
        "Data['x']['y']",
        "Facts.host.info.platformFamily == 'debian' and Data.x.y > 0",
        "Data.x.missing ?? 'default'",
        "filter(Data.users, .age > 30) | map(.name) | join(',')",
        "Data.name matches '^web[0-9]+$'",
        "Data.name in ['a', 'b', 'web1']",
    ] {
        let program = Program::compile(code).unwrap();
        measure(&format!("evaluate {code}"), || program.evaluate(black_box(&environment)).unwrap());
    }
    measure("compile Data.x.y == 1", || Program::compile(black_box("Data.x.y == 1")).unwrap());

    for text in ["Data.x.y", "Data.users.#(age>30)#.name"] {
        let path = Path::parse(text).unwrap();
        measure(&format!("find {text}"), || path.find(black_box(&root)).unwrap());
    }

    let template = Template::parse("port = ${ Data.x.y }\n").unwrap();
    measure("render port = ${ Data.x.y }", || template.render(black_box(&environment)).unwrap());
    let plain = "plain text without anything in it, of some eighty characters, as contents mostly";
    measure("has_template of 80 bytes", || has_template(black_box(plain)));
}

fn environment() -> Map {
    let json = r#"{"Data": {"a": 1, "b": 2, "x": {"y": 1}, "name": "web1",
            "users": [{"name": "a", "age": 20}, {"name": "b", "age": 40}, {"name": "c", "age": 50}]},
        "Facts": {"host": {"info": {"platformFamily": "debian"}}}, "Environ": {}}"#;
    serde_json::from_str::<Value>(json).unwrap().as_map().unwrap().clone()
}

/// Prints the best of several rounds: the others had more company.
fn measure<T>(name: &str, work: impl Fn() -> T) {
    const RUNS: u32 = 20_000;
    let round = || {
        let start = Instant::now();
        for _ in 0..RUNS {
            black_box(work());
        }
        start.elapsed()
    };
    let best: Duration = (0..20).map(|_| round()).min().unwrap();
    println!("{:>8.1} ns  {name}", best.as_secs_f64() * 1e9 / f64::from(RUNS));
}
