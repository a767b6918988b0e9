//! The function in a simulation: its processes, attempts and requests.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use futures_util::stream;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use jiff::SignedDuration;
use kube::Client;
use kube::client::Body;
use spillway_drainer::doubles::aws::{AwsCall, AwsDouble, query_error};
use spillway_drainer::doubles::{Function, REGION, TestInvocation};
use spillway_notice::Home;
use spillway_settings::Settings;
use tokio::task;
use tokio::time::{sleep, sleep_until, timeout, timeout_at};

use crate::aws::endpoint;
use crate::cluster::{ApiAnswer, ApiRequest, Next, Watch, forbidden, refusal, unauthorized, webhook_down};
use crate::fact::Fact;
use crate::lambda::{ACCOUNT, AttemptId, Begun, Ending};
use crate::network::Route;
use crate::plan::{CLUSTERS, Fault, Side};
use crate::simulation::{Shared, Simulation};

tokio::task_local! {
    /// The running attempt.
    static CURRENT: AttemptId;
}

/// Idle processes of the function. As in Lambda, each handles one event at a time and keeps its caches; a killed one is gone.
#[derive(Debug, Default)]
pub(crate) struct Processes(RefCell<Vec<Rc<Function>>>);

/// Starts a process of the function.
fn start(simulation: &Shared) -> Function {
    let variables = simulation.lock().plan.settings.clone();
    let settings = Settings::from_variables(variables.into_iter());
    let [to_aws, to_cluster, log] = [simulation.clone(), simulation.clone(), simulation.clone()];
    // Last attempt of this process that described each cluster.
    let described = Arc::new(Mutex::new(BTreeMap::new()));
    let describes = Arc::clone(&described);
    let aws = AwsDouble::new(move |call| {
        if let Some(cluster) = call.name.strip_prefix("GET /clusters/") {
            describes.lock().expect("no panic under this lock").insert(endpoint(cluster), CURRENT.get());
        }
        call_aws(to_aws.clone(), CURRENT.get(), call)
    });
    let connect = move |to: &str| {
        let (simulation, by) = (to_cluster.clone(), CURRENT.get());
        let described = described.lock().expect("no panic under this lock");
        if described.get(to).is_some_and(|last| *last != by) {
            simulation.lock().verdict.count("process knew its cluster from before");
        }
        if described.len() > 1 {
            simulation.lock().verdict.count("process served both clusters");
        }
        let cluster = CLUSTERS.iter().position(|name| endpoint(name) == to).expect("an endpoint of EKS");
        Client::new(tower::service_fn(move |request| call_api(simulation.clone(), (by, cluster), request)), "default")
    };
    Function::new(settings, &aws, connect, move |line| log.lock().logged(CURRENT.get(), line))
}

/// Handles an event in an idle or new process.
pub(crate) async fn work(simulation: Shared, processes: Rc<Processes>, begun: Begun) {
    let (id, delivery) = (begun.id, begun.delivery.clone());
    let process = processes.0.borrow_mut().pop().unwrap_or_else(|| Rc::new(start(&simulation)));
    // A separate task, so that a panic ends this attempt only.
    let ending = task::spawn_local(attempt(Rc::clone(&process), begun)).await;
    if matches!(ending, Ok(Ending::Succeeded(_) | Ending::Failed(_))) {
        processes.0.borrow_mut().push(process);
    }
    let ending = ending.unwrap_or_else(|panicked| Ending::Panicked(panicked.to_string()));
    simulation.lock().attempt_ended(id, delivery, ending);
}

async fn attempt(function: Rc<Function>, begun: Begun) -> Ending {
    let Begun { id, delivery, began, timeout: longest, kill } = begun;
    let invocation = TestInvocation {
        request_id: delivery.request,
        home: Home { account: ACCOUNT.to_owned(), region: REGION.to_owned() },
        began,
        lasts: SignedDuration::try_from(longest).unwrap_or_default(),
    };
    let handled = CURRENT.scope(id, function.handle(delivery.event, invocation));
    tokio::select! {
        biased;
        () = kill.notified() => Ending::Killed,
        handled = timeout(longest, handled) => match handled {
            Err(_) => Ending::TimedOut,
            Ok(Ok(receipt)) => Ending::Succeeded(receipt.ending.map_or_else(String::new, |ending| format!("{ending:?}"))),
            Ok(Err(failure)) => Ending::Failed(failure),
        },
    }
}

/// Passes a request and its answer, unless a fault or a kill prevents it.
async fn pass<A>(
    simulation: &Shared,
    to: (Side, Option<usize>),
    by: AttemptId,
    request: &str,
    answer: impl FnOnce(&mut Simulation) -> A,
) -> Result<A, Fault> {
    let Route { there, back, fault } = simulation.lock().route(to, by, request);
    sleep(there).await;
    if fault == Some(Fault::RequestLost) {
        return Err(Fault::RequestLost);
    }
    let (answer, is_killed) = {
        let mut inside = simulation.lock();
        let is_refused = matches!(fault, Some(Fault::Refused | Fault::Unauthorized | Fault::Denied | Fault::Webhook));
        ((!is_refused).then(|| answer(&mut inside)), inside.lambda.made_request(by))
    };
    if is_killed || fault == Some(Fault::Hangs) {
        return pending().await;
    }
    sleep(back).await;
    match (answer, fault) {
        (_, Some(fault @ (Fault::AnswerLost | Fault::Unauthorized | Fault::Denied | Fault::Webhook))) => Err(fault),
        (answer, _) => answer.ok_or(Fault::Refused),
    }
}

async fn call_aws(simulation: Shared, by: AttemptId, call: AwsCall) -> Option<(u16, String)> {
    let line = format!("{} {}", call.name, call.body);
    match pass(&simulation, (Side::Aws, None), by, &line, |inside| inside.answer_aws(by, &call)).await {
        Ok(answer) => Some(answer),
        Err(Fault::Refused | Fault::Unauthorized) => Some((503, query_error("Throttling", "Rate exceeded"))),
        Err(Fault::Denied) => Some(denied(&call.name, simulation.lock().network.variant(2))),
        Err(_) => None,
    }
}

/// Answer to a denied call, in the format of its service. Names of calls with XML have no space.
fn denied(call: &str, variant: usize) -> (u16, String) {
    let code = ["AccessDenied", "ExpiredToken"][variant];
    let is_xml = !call.contains(' ') && call != "PutEvents";
    let json = || format!(r#"{{"__type":"{code}Exception","message":"why"}}"#);
    (403, if is_xml { query_error(code, "why") } else { json() })
}

async fn call_api(
    simulation: Shared,
    (by, cluster): (AttemptId, usize),
    request: Request<Body>,
) -> io::Result<Response<UnsyncBoxBody<Bytes, io::Error>>> {
    let (head, body) = request.into_parts();
    let body = body.collect_bytes().await.map_err(io::Error::other)?;
    let request = ApiRequest::read((by, cluster), &head.method, &head.uri, &body);
    if let Some(request) = request.leave() {
        simulation.lock().record(&Fact::LeaveRequested { by, request });
    }
    let line = request.to_string();
    let answer =
        match pass(&simulation, (Side::Api, Some(cluster)), by, &line, |inside| inside.answer_api(&request)).await {
            Ok(answer) => answer,
            Err(Fault::Refused) => refusal(simulation.lock().network.variant(3)),
            Err(Fault::Unauthorized) => unauthorized(),
            Err(Fault::Denied) => forbidden(),
            Err(Fault::Webhook) => webhook_down(),
            Err(_) => return Err(io::Error::other("the connection broke")),
        };
    let (code, body) = match answer {
        ApiAnswer::Says(code, body) => (code, Full::from(body).map_err(|never| match never {}).boxed_unsync()),
        ApiAnswer::Watches(watch) => {
            let lines = stream::unfold((simulation, watch), async |(simulation, mut watch)| {
                let line = next_line(&simulation, &mut watch).await?;
                Some((line.map(|line| Frame::data(Bytes::from(line))), (simulation, watch)))
            });
            (200, StreamBody::new(lines).boxed_unsync())
        }
    };
    Ok(Response::builder().status(code).body(body).expect("the response has a status"))
}

/// Returns the next line of a watch, or `None` at its end.
pub(crate) async fn next_line(simulation: &Shared, watch: &mut Watch) -> Option<io::Result<String>> {
    loop {
        let news = simulation.lock().clusters[watch.cluster].news();
        let news = news.notified();
        let next = simulation.lock().clusters[watch.cluster].next(watch);
        match next {
            Next::Line(line, at) => {
                sleep_until(at).await;
                return Some(Ok(line + "\n"));
            }
            Next::Nothing { until } => drop(timeout_at(until, news).await),
            Next::Resets => {
                simulation.lock().verdict.count("watch reset");
                return Some(Err(io::Error::other("the connection was reset")));
            }
            Next::Ends => {
                simulation.lock().verdict.count("watch ended");
                return None;
            }
        }
    }
}
