//! Binding the listener.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::config::Listen;

/// A bound listener.
#[derive(Debug)]
pub enum Bound {
    /// On a Unix socket, which is removed when this is dropped.
    Unix(UnixListener, SocketFile),
    /// On TCP.
    Tcp(TcpListener),
}

/// The file of a Unix socket.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on `{listen}`")]
pub struct BindError {
    listen: Listen,
    #[source]
    source: io::Error,
}

impl Bound {
    /// Binds. A Unix socket that a dead registry left is replaced, a live one is not; it is for our user only.
    ///
    /// # Errors
    /// It cannot be bound.
    pub async fn bind(listen: &Listen) -> Result<Self, BindError> {
        let bound = match listen {
            Listen::Unix(path) => bind_unix(path).await,
            Listen::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
        };
        bound.map_err(|source| BindError { listen: listen.clone(), source })
    }

    /// Where it listens, as a client would say it.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn address(&self) -> io::Result<String> {
        Ok(match self {
            Self::Unix(_, file) => format!("unix:{}", file.0.display()),
            Self::Tcp(listener) => format!("http://{}", listener.local_addr()?),
        })
    }
}

async fn bind_unix(path: &Path) -> io::Result<Bound> {
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "something else is at this path"));
        }
        if UnixStream::connect(path).await.is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(Bound::Unix(listener, SocketFile(path.to_owned())))
}
