//! A plan on its way from a host to the controller: pieces in lines of JSON.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

/// Protocol of a line with a piece of a plan.
pub(super) const PROTOCOL: &str = "io.choria.ccm.v1.push.plan";

/// Bytes in a piece.
const PIECE: usize = 32 << 10;

/// Largest plan that a controller accepts.
const LARGEST: usize = 64 << 20;

/// Returns a plan as lines.
pub(crate) fn plan_lines(plan: &[u8]) -> impl Iterator<Item = String> {
    let line = |piece| json!({ "protocol": PROTOCOL, "data": BASE64_STANDARD.encode(piece) }).to_string();
    plan.chunks(PIECE).map(line)
}

/// Adds a piece to a plan.
pub(super) fn add(plan: &mut Vec<u8>, line: &Map<String, Value>) -> Result<(), &'static str> {
    let encoded = line.get("data").and_then(Value::as_str).unwrap_or_default();
    let piece = BASE64_STANDARD.decode(encoded).map_err(|_| "the plan cannot be read")?;
    if plan.len() + piece.len() > LARGEST {
        return Err("the plan is too large");
    }
    plan.extend(piece);
    Ok(())
}

/// Returns a plan as a request carries it.
pub(crate) fn encoded_plan(plan: &[u8]) -> String {
    BASE64_STANDARD.encode(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_arrives_as_it_was_sent() {
        let sent: Vec<u8> = (0..PIECE * 2 + 7).map(|n| n.to_le_bytes()[0]).collect();
        let mut received = Vec::new();
        for line in plan_lines(&sent) {
            let line: Value = serde_json::from_str(&line).unwrap();
            add(&mut received, line.as_object().unwrap()).unwrap();
        }
        assert_eq!(received, sent);
        let damaged = json!({ "data": "%" });
        assert!(add(&mut received, damaged.as_object().unwrap()).is_err());
    }
}
