//! `toml`: a value in a file that programs read; comments and order stay.

use serde_json::Value;
use toml_edit::{DocumentMut, Item, Key, Table, TableLike};

use super::Reason;

/// Sets a dotted key of a TOML text, or removes it where there is no value.
pub(super) fn edit(text: &str, keys: &[Key], value: Option<&Value>) -> Result<String, Reason> {
    let failed =
        |error: toml_edit::TomlError| Reason::NotParsed { format: "TOML", error: error.message().to_owned() };
    let mut document: DocumentMut = text.parse().map_err(failed)?;
    let Some((last, above)) = keys.split_last() else { return Ok(text.to_owned()) };
    let Some(table) = reach(document.as_table_mut(), above, value.is_some())? else {
        return Ok(text.to_owned());
    };
    match value {
        None => {
            table.remove(last.get());
        }
        Some(value) => {
            let new = toml_value(value);
            match table.get_mut(last.get()) {
                Some(Item::Value(old)) if old.to_string().trim() == new.to_string().trim() => {}
                Some(Item::Value(old)) => {
                    // What stands around the value, such as a comment behind it, stays.
                    let decor = old.decor().clone();
                    *old = new;
                    *old.decor_mut() = decor;
                }
                _ => {
                    table.insert(last.get(), Item::Value(new));
                }
            }
        }
    }
    Ok(document.to_string())
}

/// Goes down to the table that holds the last key. Makes what is missing, or returns nothing where that is not wanted.
fn reach<'t>(
    root: &'t mut dyn TableLike,
    keys: &[Key],
    make: bool,
) -> Result<Option<&'t mut dyn TableLike>, Reason> {
    let mut table = root;
    for key in keys {
        if table.get(key.get()).is_none_or(Item::is_none) {
            if !make {
                return Ok(None);
            }
            let mut new = Table::new();
            new.set_implicit(true);
            table.insert(key.get(), Item::Table(new));
        }
        let item = table.get_mut(key.get()).and_then(Item::as_table_like_mut);
        table = item.ok_or_else(|| Reason::NotATable { key: key.get().to_owned() })?;
    }
    Ok(Some(table))
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Null => "".into(),
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => number.to_string().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(toml_value).collect::<toml_edit::Array>().into(),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| (Key::new(key), toml_value(value)));
            entries.collect::<toml_edit::InlineTable>().into()
        }
    }
}
