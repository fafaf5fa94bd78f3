//! Tasks that must not end: one that panics is started again.

use std::future::Future;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The pause before a task is started again, first and longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// Runs a task for ever. The task ends with this future.
pub async fn supervise<F>(name: &str, start: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut pause = PAUSE.0;
    loop {
        let begun = Instant::now();
        let mut task = JoinSet::new();
        task.spawn(start());
        let ended = task.join_next().await;
        if begun.elapsed() > PAUSE.1 {
            pause = PAUSE.0;
        }
        let why = match ended {
            Some(Err(error)) => error.to_string(),
            Some(Ok(())) | None => "it ended".to_owned(),
        };
        tracing::error!(
            task = name,
            why,
            pause_ms = pause.as_millis() as u64,
            "a task ended, starting it again"
        );
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}

#[cfg(test)]
mod tests {
    use super::supervise;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn a_task_that_panics_is_started_again() {
        let (starts, third) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let supervised = supervise("test", || {
            let (starts, third) = (Arc::clone(&starts), Arc::clone(&third));
            async move {
                if starts.fetch_add(1, Ordering::SeqCst) == 2 {
                    third.notify_one();
                    std::future::pending::<()>().await;
                }
                panic!("on purpose");
            }
        });
        tokio::select! {
            () = supervised => {}
            () = third.notified() => {}
        }
        assert_eq!(starts.load(Ordering::SeqCst), 3);
    }
}
