//! A Unix socket in front of an engine's socket, which a test can remove and restore.

use anyhow::Result;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// Forwards bytes to an engine while it is up.
pub struct Proxy {
    dir: TempDir,
    engine: PathBuf,
    up: Option<Up>,
}

struct Up {
    stop: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<UnixStream>>>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy in front of this socket.
    pub fn new(engine: &Path) -> Result<Self> {
        let mut proxy = Self {
            dir: tempfile::Builder::new().prefix("wharf-proxy-").tempdir()?,
            engine: engine.to_owned(),
            up: None,
        };
        proxy.up()?;
        Ok(proxy)
    }

    /// Returns the path of the proxy's socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("engine.sock")
    }

    /// Restores the socket.
    pub fn up(&mut self) -> Result<()> {
        if self.up.is_some() {
            return Ok(());
        }
        let listener = UnixListener::bind(self.socket())?;
        let stop = Arc::new(AtomicBool::new(false));
        let streams = Arc::new(Mutex::new(Vec::new()));
        let engine = self.engine.clone();
        let (stopped, kept) = (Arc::clone(&stop), Arc::clone(&streams));
        let accepting = std::thread::spawn(move || {
            for inside in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                drop(splice(inside, &engine, &kept));
            }
        });
        self.up = Some(Up {
            stop,
            streams,
            accepting,
        });
        Ok(())
    }

    /// Removes the socket, and closes the connections through it.
    pub fn down(&mut self) -> Result<()> {
        let Some(up) = self.up.take() else {
            return Ok(());
        };
        up.stop.store(true, Ordering::SeqCst);
        // A connection wakes the accepting thread, which then reads the flag.
        drop(UnixStream::connect(self.socket()));
        drop(up.accepting.join());
        std::fs::remove_file(self.socket())?;
        for stream in up
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            drop(stream.shutdown(Shutdown::Both));
        }
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.down());
    }
}

fn splice(inside: UnixStream, engine: &Path, streams: &Mutex<Vec<UnixStream>>) -> io::Result<()> {
    let outside = UnixStream::connect(engine)?;
    {
        let mut kept = streams.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(inside.try_clone()?);
        kept.push(outside.try_clone()?);
    }
    for (mut from, mut to) in [
        (inside.try_clone()?, outside.try_clone()?),
        (outside, inside),
    ] {
        std::thread::spawn(move || {
            drop(io::copy(&mut from, &mut to));
            drop(to.shutdown(Shutdown::Write));
        });
    }
    Ok(())
}
