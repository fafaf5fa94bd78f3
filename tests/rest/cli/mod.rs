//! The commands for users, against a real server with the simulated engine.

mod account;
mod admin_socket;
mod agent;
mod completions;
mod config_ssh;
mod console;
mod exit_codes;
mod follow;
mod images;
mod json;
mod login;
mod names;
mod newer;
mod operator;
mod public_keys;
mod secrets;
mod share;
mod snapshots;
mod terminal;
mod tunnel;
mod unreachable;
mod verbs;
mod volumes;
