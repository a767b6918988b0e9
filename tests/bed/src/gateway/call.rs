//! Names of requests: `create pods/eviction` as in the audit log, `ec2:DescribeInstances` as in IAM.

use http::Method;
use http::header::AUTHORIZATION;
use http::request::Parts;

/// Protocol of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Kubernetes,
    Aws,
}

impl Language {
    pub(super) fn call(self, head: &Parts, body: &[u8]) -> String {
        match self {
            Self::Kubernetes => kubernetes(&head.method, head.uri.path(), head.uri.query().unwrap_or_default()),
            Self::Aws => aws(head, body),
        }
    }
}

/// Paths are `/api/v1/…` or `/apis/<group>/<version>/…`, then an optional `namespaces/<namespace>/`, then
/// `<resource>[/<name>[/<subresource>]]`.
fn kubernetes(method: &Method, path: &str, query: &str) -> String {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (["api", _, object @ ..] | ["apis", _, _, object @ ..]) = segments.as_slice() else {
        return format!("{method} {path}");
    };
    let object = match object {
        ["namespaces", _, in_namespace @ ..] if !in_namespace.is_empty() => in_namespace,
        object => object,
    };
    let watched = query.split('&').any(|pair| matches!(pair, "watch" | "watch=true" | "watch=1"));
    let verb = match (method.as_str(), object.len()) {
        ("GET", 0 | 1) if watched => "watch",
        ("GET", 0 | 1) => "list",
        ("GET", _) => "get",
        ("POST", _) => "create",
        ("PATCH", _) => "patch",
        ("PUT", _) => "update",
        ("DELETE", _) => "delete",
        (other, _) => other,
    };
    match object {
        [resource, _, subresource, ..] => format!("{verb} {resource}/{subresource}"),
        [resource, ..] => format!("{verb} {resource}"),
        [] => format!("{verb} {path}"),
    }
}

/// The service stands in the signature's scope, the action in a header, in the form, or (EKS, Scheduler) in method and path.
fn aws(head: &Parts, body: &[u8]) -> String {
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let scope = header(AUTHORIZATION.as_str()).split("Credential=").nth(1).unwrap_or_default();
    let service = scope.split('/').nth(3).unwrap_or("unsigned");
    let form = String::from_utf8_lossy(body);
    let in_form = form.split('&').find_map(|pair| pair.strip_prefix("Action=")).map(str::to_owned);
    let in_header = header("x-amz-target").rsplit('.').next().filter(|action| !action.is_empty()).map(str::to_owned);
    let in_path = || match (service, &head.method, head.uri.path().starts_with("/clusters/")) {
        ("eks", &Method::GET, true) => "DescribeCluster".to_owned(),
        ("scheduler", &Method::POST, _) => "CreateSchedule".to_owned(),
        ("scheduler", &Method::PUT, _) => "UpdateSchedule".to_owned(),
        ("scheduler", &Method::DELETE, _) => "DeleteSchedule".to_owned(),
        _ => format!("{} {}", head.method, head.uri.path()),
    };
    format!("{service}:{}", in_header.or(in_form).unwrap_or_else(in_path))
}
