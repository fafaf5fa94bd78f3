//! The commands for users, against a real server with the simulated engine.

mod account;
mod completions;
mod config_ssh;
mod console;
mod exit_codes;
mod follow;
mod json;
mod login;
mod operator;
mod secrets;
mod terminal;
mod verbs;
