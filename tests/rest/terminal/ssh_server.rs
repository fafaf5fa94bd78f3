//! An SSH server in place of an instance of the simulated engine. Its shell has commands of the tests.

use anyhow::{Context, Result};
use russh::keys::PrivateKey;
use russh::keys::ssh_key::private::{Ed25519Keypair, KeypairData};
use russh::server::{Auth, ChannelOpenHandle, Config, Handler, Msg, Session, run_stream};
use russh::{Channel, ChannelId, ChannelMsg, ChannelOpenFailure, ChannelWriteHalf, Pty};
use serde_json::Value;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

/// The lines of `flood`.
pub const LINE: &[u8; 16] = b"0123456789abcde\n";
/// From the end of a server to the next on its port.
const FREED_LIMIT: Duration = Duration::from_secs(5);

/// An SSH server. Dropping it closes its connections.
pub struct SshServer {
    _runtime: Runtime,
    /// Bytes that the shells could write.
    pub written: Arc<AtomicU64>,
    /// Shells that are open.
    pub open: Arc<AtomicU64>,
    logins: Arc<AtomicU64>,
    hears: Arc<Notify>,
    is_forbidden: Arc<AtomicBool>,
    is_late: Arc<AtomicBool>,
    commands: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct LoginHandler {
    user: String,
    password: String,
    written: Arc<AtomicU64>,
    open: Arc<AtomicU64>,
    logins: Arc<AtomicU64>,
    hears: Arc<Notify>,
    is_forbidden: Arc<AtomicBool>,
    is_late: Arc<AtomicBool>,
    commands: Arc<Mutex<Vec<String>>>,
}

impl SshServer {
    /// Refuses to pass on connections from now on.
    pub fn forbid_forwarding(&self) {
        self.is_forbidden.store(true, Ordering::SeqCst);
    }

    /// Opens further channels to ports only after [`Self::hear`], one for each call.
    pub fn open_late(&self) {
        self.is_late.store(true, Ordering::SeqCst);
    }

    /// The commands that it was sent.
    pub fn commands(&self) -> Vec<String> {
        self.commands.lock().unwrap().clone()
    }

    /// Ends the pause of a shell that is `deaf`, or of a channel that opens late.
    pub fn hear(&self) {
        self.hears.notify_one();
    }

    /// The number of passwords that it was sent.
    pub fn logins(&self) -> u64 {
        self.logins.load(Ordering::SeqCst)
    }

    /// Serves the SSH port of an instance with its login.
    pub fn of(instance: &Value) -> Result<Self> {
        let password = instance["original_service_password"].as_str();
        Self::start(instance, password.context("password")?, 1)
    }

    /// Serves the SSH port of an instance with another password or another host key.
    pub fn start(instance: &Value, password: &str, host_key: u8) -> Result<Self> {
        let port = u16::try_from(instance["wan_ssh_port"].as_u64().context("port")?)?;
        let key = KeypairData::Ed25519(Ed25519Keypair::from_seed(&[host_key; 32]));
        let config = Arc::new(Config {
            keys: vec![PrivateKey::new(key, "")?],
            auth_rejection_time: Duration::from_millis(10),
            // That of OpenSSH's server.
            max_auth_attempts: 6,
            window_size: 64 * 1024,
            channel_buffer_size: 2,
            nodelay: true,
            ..Config::default()
        });
        let login = LoginHandler {
            user: "user".to_owned(),
            password: password.to_owned(),
            written: Arc::default(),
            open: Arc::default(),
            logins: Arc::default(),
            hears: Arc::default(),
            is_forbidden: Arc::default(),
            is_late: Arc::default(),
            commands: Arc::default(),
        };
        let (written, open) = (Arc::clone(&login.written), Arc::clone(&login.open));
        let (logins, hears) = (Arc::clone(&login.logins), Arc::clone(&login.hears));
        let is_forbidden = Arc::clone(&login.is_forbidden);
        let (is_late, commands) = (Arc::clone(&login.is_late), Arc::clone(&login.commands));
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let listener = runtime.block_on(listen(port))?;
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (config, login) = (Arc::clone(&config), login.clone());
                tokio::spawn(async move {
                    if let Ok(session) = run_stream(config, stream, login).await {
                        drop(session.await);
                    }
                });
            }
        });
        Ok(Self {
            _runtime: runtime,
            written,
            open,
            logins,
            hears,
            is_forbidden,
            is_late,
            commands,
        })
    }
}

/// Listens on a port that an earlier server has had. A process that another test starts has the earlier
/// socket for a moment, between fork and exec.
async fn listen(port: u16) -> Result<TcpListener> {
    let end = Instant::now() + FREED_LIMIT;
    loop {
        match TcpListener::bind(("127.0.0.1", port)).await {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            bound => return Ok(bound?),
        }
    }
}

impl Handler for LoginHandler {
    type Error = russh::Error;

    async fn auth_password(&mut self, user: &str, password: &str) -> Result<Auth, Self::Error> {
        self.logins.fetch_add(1, Ordering::SeqCst);
        if user == self.user && password == self.password {
            Ok(Auth::Accept)
        } else {
            Ok(Auth::reject())
        }
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        reply.accept().await;
        tokio::spawn(shell(channel, self.clone()));
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host: &str,
        port: u32,
        _: &str,
        _: u32,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        if self.is_forbidden.load(Ordering::SeqCst) {
            reply
                .reject(ChannelOpenFailure::AdministrativelyProhibited)
                .await;
            return Ok(());
        }
        let to = (host.to_owned(), u16::try_from(port).unwrap());
        if self.is_late.load(Ordering::SeqCst) {
            let hears = Arc::clone(&self.hears);
            tokio::spawn(async move {
                hears.notified().await;
                pass_on(channel, reply, to).await;
            });
        } else {
            pass_on(channel, reply, to).await;
        }
        Ok(())
    }

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        term: &str,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        modes: &[(Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        assert_eq!(term, "xterm-256color");
        assert!(modes.contains(&(Pty::IUTF8, 1)));
        session.channel_success(channel)
    }

    async fn shell_request(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        _: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)
    }
}

/// Connects to a port, and passes the bytes of a channel on.
async fn pass_on(channel: Channel<Msg>, reply: ChannelOpenHandle, to: (String, u16)) {
    match TcpStream::connect(to).await {
        Ok(mut stream) => {
            reply.accept().await;
            let mut channel = channel.into_stream();
            tokio::spawn(async move { copy_bidirectional(&mut channel, &mut stream).await });
        }
        Err(_) => reply.reject(ChannelOpenFailure::ConnectFailed).await,
    }
}

/// Counts an open shell.
struct Open(Arc<AtomicU64>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn shell(channel: Channel<Msg>, login: LoginHandler) {
    login.open.fetch_add(1, Ordering::SeqCst);
    let _open = Open(Arc::clone(&login.open));
    let (mut input, output) = channel.split();
    let (mut line, mut size) = (Vec::new(), (0, 0));
    // Bytes that `sink` still takes, their sum, and the number asked for.
    let mut sink = (0, 0_u64, 0);
    while let Some(message) = input.wait().await {
        let bytes = match message {
            ChannelMsg::RequestPty {
                col_width,
                row_height,
                ..
            }
            | ChannelMsg::WindowChange {
                col_width,
                row_height,
                ..
            } => {
                size = (col_width, row_height);
                continue;
            }
            ChannelMsg::RequestShell { .. } => {
                write(&output, &login, b"ready> ").await;
                continue;
            }
            ChannelMsg::Exec { command, .. } => {
                let command = String::from_utf8(command).unwrap();
                login.commands.lock().unwrap().push(command);
                exit(&output, 0).await;
                return;
            }
            ChannelMsg::Data { data } => data,
            _ => continue,
        };
        for byte in bytes {
            if sink.0 > 0 {
                sink = (sink.0 - 1, sink.1 + u64::from(byte), sink.2);
                if sink.0 == 0 {
                    let text = format!("sunk {} {}\n", sink.2, sink.1);
                    write(&output, &login, text.as_bytes()).await;
                }
                continue;
            }
            if byte != b'\r' {
                line.push(byte);
                continue;
            }
            let text = String::from_utf8(std::mem::take(&mut line)).unwrap();
            let (command, argument) = text.split_once(' ').unwrap_or((&text, ""));
            match command {
                "size" => {
                    let text = format!("{} {}\n", size.0, size.1);
                    write(&output, &login, text.as_bytes()).await;
                }
                "flood" => flood(&output, &login, argument.parse().unwrap()).await,
                "sink" => {
                    let bytes: usize = argument.parse().unwrap();
                    sink = (bytes, 0, bytes);
                }
                "deaf" => login.hears.notified().await,
                "exit" => {
                    exit(&output, argument.parse().unwrap()).await;
                    return;
                }
                _ => write(&output, &login, format!("you said {text}\n").as_bytes()).await,
            }
        }
    }
}

async fn exit(output: &ChannelWriteHalf<Msg>, code: u32) {
    output.exit_status(code).await.unwrap();
    output.eof().await.unwrap();
    output.close().await.unwrap();
}

async fn flood(output: &ChannelWriteHalf<Msg>, login: &LoginHandler, mut bytes: usize) {
    let block = LINE.repeat(1024);
    while bytes > 0 {
        let part = bytes.min(block.len());
        write(output, login, &block[..part]).await;
        bytes -= part;
    }
    write(output, login, b"done\n").await;
}

async fn write(output: &ChannelWriteHalf<Msg>, login: &LoginHandler, bytes: &[u8]) {
    if output.data(bytes).await.is_ok() {
        let length = u64::try_from(bytes.len()).unwrap();
        login.written.fetch_add(length, Ordering::SeqCst);
    }
}
