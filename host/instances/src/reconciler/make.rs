//! The steps that make an instance run: creation and start.

use super::attempt::{Attempt, NextAttempt};
use wharf_domain::driver::{DriverReport, Phase, PluginError};

/// The number of early ends after which a start counts as failed.
const MAX_STARTS: u32 = 5;

/// Whether a request got no answer, so that the engine may still carry it out.
pub fn is_lost(report: &Result<DriverReport, PluginError>) -> bool {
    matches!(
        report,
        Err(PluginError::Unreachable(_) | PluginError::Fault(_))
    )
}

impl Attempt<'_> {
    /// Moves a new instance a step on.
    pub async fn make(&mut self) -> NextAttempt {
        if let Err(next) = self.usable_volumes().await {
            return next;
        }
        let (id, vault) = (self.instance.id, &self.app.vault);
        let opened = self
            .provisioning_spec()
            .and_then(|d| vault.decrypt_all(id, &d.secrets, &self.instance.password));
        let secrets = match opened {
            Ok(opened) => opened,
            Err(error) => return error.into(),
        };
        let may_exist = match self.tasks.was_never_requested(&self.app.db, id) {
            Ok(never) => !never,
            Err(error) => return error.into(),
        };
        let content = match self.content() {
            Ok(content) => content,
            Err(error) => return error.into(),
        };
        self.tasks.requesting(id, may_exist);
        if let Some(content) = content.as_ref().filter(|content| !content.has_come)
            && let Err(next) = self.receive(&content.of).await
        {
            return next;
        }
        let spec = match self.spec(may_exist) {
            Ok(spec) => spec,
            Err(error) => return error.into(),
        };
        let report = self.driver.ensure(&spec, &secrets).await;
        self.permit = None;
        if is_lost(&report) {
            self.tasks.not_answered(id, |last, now| last.creation = now);
        }
        if content.is_some() && matches!(report, Err(PluginError::NotFound)) {
            return self.writer.content_came(false).await.into();
        }
        // The instance ended before it was reachable: with the engine, or by itself.
        if let Ok(DriverReport {
            phase: Phase::Stopped(why),
            ..
        }) = &report
        {
            self.history.starts += 1;
            if self.history.starts > MAX_STARTS {
                let why = why.as_deref().unwrap_or("no reason given");
                let why = format!("ends right after its start: {why}");
                return self.give_up(&why).await;
            }
            let report = self.driver.start(&self.target).await;
            return self.follow(report).await;
        }
        self.follow(report).await
    }

    /// Starts an existing instance, after growing its disk if the driver says so.
    pub async fn start(&mut self) -> NextAttempt {
        if let Err(next) = self.set_volumes().await {
            return next;
        }
        if let Err(next) = self.startable().await {
            return next;
        }
        if let Err(next) = self.restore().await {
            return next;
        }
        if let Err(next) = self.wait_for_copy().await {
            return next;
        }
        let report = self.driver.start(&self.target).await;
        if is_lost(&report) {
            let id = self.instance.id;
            self.tasks.not_answered(id, |last, now| last.size = now);
        }
        if let Ok(DriverReport {
            phase: Phase::Growing(_),
            ..
        }) = report
        {
            return self.grow().await;
        }
        self.follow(report).await
    }
}
