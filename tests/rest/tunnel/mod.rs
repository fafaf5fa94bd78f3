//! Tunnels, with servers of the tests in place of the ports of simulated instances.

mod bytes;
mod ends;
mod refusals;

use crate::uuid;
use serde_json::Value;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use wharf_tests::{Api, Tunnel};

/// A server on the SSH port of an instance, without SSH. `serve` gets its first connection.
fn on_ssh_port<T: Send + 'static>(
    instance: &Value,
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> JoinHandle<T> {
    let port = u16::try_from(instance["wan_ssh_port"].as_u64().unwrap()).unwrap();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || serve(listener.accept().unwrap().0))
}

/// A server that listens on a free port of an address, and its port.
fn listener(address: &str) -> (TcpListener, u16) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Sends all bytes back that it is sent, to their end.
fn echo(listener: TcpListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut writer = stream.try_clone().unwrap();
                drop(std::io::copy(&mut stream, &mut writer));
                drop(writer.shutdown(std::net::Shutdown::Write));
            });
        }
    });
}

/// Sends bytes through a tunnel to a server that sends them back.
fn exchange(tunnel: &mut Tunnel, text: &[u8]) {
    tunnel.send(text).unwrap();
    assert_eq!(tunnel.read_exact(text.len()).unwrap(), text);
}

fn open(api: &Api, instance: &Value, port: u16) -> Tunnel {
    Tunnel::open(api, uuid(instance), port).unwrap()
}

/// Reads a connection to its end.
fn ended(mut stream: TcpStream) -> std::io::Result<usize> {
    stream.read_to_end(&mut Vec::new())
}
