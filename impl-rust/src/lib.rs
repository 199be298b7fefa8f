//! The users API in Rust: 10,000 users in memory, read by id and added to.
//!
//! Read it in this order, which is the same in every language: [`service`] (what other
//! languages call main), [`settings`], [`store`], [`user`], [`refusal`], [`body`], and the
//! app, which exists twice: [`app_axum`] and [`app_hyper`].

pub mod app_axum;
pub mod app_hyper;
pub mod body;
pub mod refusal;
pub mod service;
pub mod settings;
pub mod store;
pub mod user;
