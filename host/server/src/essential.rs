//! Tasks that the server cannot do without. It ends with the first of them that ends.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use tokio::task::{JoinError, JoinHandle};

/// The tasks.
#[derive(Default)]
pub struct Essential(Vec<Task>);

struct Task {
    name: &'static str,
    /// None once it has ended.
    handle: Option<JoinHandle<()>>,
}

impl Essential {
    /// Adds a task.
    pub fn add(&mut self, name: &'static str, handle: JoinHandle<()>) {
        let handle = Some(handle);
        self.0.push(Task { name, handle });
    }

    /// Waits until one of the tasks ends, and returns its name.
    pub async fn ended(&mut self) -> &'static str {
        poll_fn(|context| {
            for task in &mut self.0 {
                let Some(handle) = &mut task.handle else {
                    continue;
                };
                if let Poll::Ready(ended) = Pin::new(handle).poll(context) {
                    task.handle = None;
                    tell(task.name, ended);
                    return Poll::Ready(task.name);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Waits until all tasks have ended.
    pub async fn finished(self) {
        for task in self.0 {
            if let Some(handle) = task.handle {
                tell(task.name, handle.await);
            }
        }
    }
}

fn tell(name: &str, ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!("{name} failed: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::Essential;

    #[tokio::test]
    async fn the_first_task_that_ends_is_named_even_if_it_panics() {
        let mut tasks = Essential::default();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let good = async move { drop(stopped.await) };
        tasks.add("good", tokio::spawn(good));
        tasks.add("bad", tokio::spawn(async { panic!("on purpose") }));
        assert_eq!(tasks.ended().await, "bad");
        drop(stop);
        tasks.finished().await;
    }
}
