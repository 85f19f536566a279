//! Parts of the project that have a score of their own.

use std::str::FromStr;

/// `NAME=PATH=TEST,TEST`: an area may have several of these.
pub(crate) struct Area {
    pub(crate) name: String,
    /// How the paths of its files begin.
    begin: String,
    /// How the names of tests begin that are likely to notice.
    likely: Vec<String>,
}

impl Area {
    pub(crate) fn has(&self, file: &str) -> bool {
        file.starts_with(&self.begin)
    }

    pub(crate) fn is_likely(&self, test: &str) -> bool {
        self.likely.iter().any(|begin| test.starts_with(begin))
    }
}

impl FromStr for Area {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let [name, path, tests] = text.splitn(3, '=').collect::<Vec<_>>()[..] else {
            return Err(format!("not NAME=PATH=TEST,TEST: {text}"));
        };
        let begin = path.split('*').next().unwrap_or_default().to_owned();
        Ok(Self { name: name.to_owned(), begin, likely: tests.split(',').map(str::to_owned).collect() })
    }
}
