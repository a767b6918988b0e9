//! The queue of drains that can wait, as the template has it, and the function that gets them.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::aws::PatientQueue;
use crate::error::BedError;
use crate::lambda::{Lambda, LambdaOptions, Outcome, Poller};
use crate::world::World;

/// A function behind such a queue, which is polled until this is dropped.
#[derive(Debug)]
pub struct Patient {
    /// The function, which is told of the queue.
    pub lambda: Lambda,
    outcomes: watch::Receiver<Vec<Outcome>>,
    polling: Vec<JoinHandle<()>>,
}

impl Patient {
    /// Deploys a function whose drains that can wait have so many invocations at a time.
    pub async fn deploy(world: &World, mut options: LambdaOptions, slots: usize) -> Result<Self, BedError> {
        let aws = world.aws_side();
        let PatientQueue { name, url } = aws.create_patient_queue(&options.function_name).await?;
        options.env.insert("SPILLWAY_PATIENT_QUEUE".to_owned(), url);
        let lambda = Lambda::start(world, options).await?;
        let (told, outcomes) = watch::channel(Vec::new());
        let poll = |_| {
            let (aws, queue, lambda) = (aws.clone(), name.clone(), lambda.clone());
            let (told, poller) = (told.clone(), Poller { aws, queue, lambda, batch_size: 1, window: Duration::ZERO });
            tokio::spawn(async move {
                let Err(error) = poller.run(told).await;
                eprintln!("the poller of drains that can wait has failed: {error}");
            })
        };
        let polling = (0..slots).map(poll).collect();
        Ok(Self { lambda, outcomes, polling })
    }

    /// What came of the invocations that the queue began.
    #[must_use]
    pub fn outcomes(&self) -> Vec<Outcome> {
        self.outcomes.borrow().clone()
    }

    /// Waits until these are as the condition wants them.
    pub async fn until(&self, condition: impl FnMut(&Vec<Outcome>) -> bool) {
        let mut outcomes = self.outcomes.clone();
        let _ = outcomes.wait_for(condition).await;
    }
}

impl Drop for Patient {
    fn drop(&mut self) {
        self.polling.iter().for_each(JoinHandle::abort);
    }
}
