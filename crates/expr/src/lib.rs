//! The expression language of ccm.
