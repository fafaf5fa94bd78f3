//! TCP connections that end with their owner.

use std::io;
use std::net::Shutdown;
use tokio::net::TcpStream;

/// Closes a connection when it is dropped, whichever task uses it.
#[derive(Debug)]
pub struct Hangup(std::net::TcpStream);

impl Drop for Hangup {
    fn drop(&mut self) {
        // A connection that the server has closed cannot be shut down.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Connects to an SSH server. russh serves a connection in a task of its own, which would wait for a
/// silent server for ever.
pub async fn dial(host: &str, port: u16) -> io::Result<(TcpStream, Hangup)> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let stream = stream.into_std()?;
    let hangup = Hangup(stream.try_clone()?);
    Ok((TcpStream::from_std(stream)?, hangup))
}
