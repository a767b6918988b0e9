//! Pods of one owner: how many are asked for at once.

use super::*;

const A_MOMENT: Duration = Duration::from_millis(50);

pub(super) fn of_owner(mut pod: Pod, owner: &str) -> Pod {
    let controller =
        json!([{"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": owner, "uid": owner, "controller": true}]);
    pod.metadata.owner_references = serde_json::from_value(controller).unwrap();
    pod
}

fn owned(owner: &str, count: usize) -> Vec<Pod> {
    (0..count).map(|n| of_owner(pod(&format!("{owner}-{n:02}"), None), owner)).collect()
}

#[test]
fn five_of_an_owners_pods_are_kept_back_and_asked_for_as_the_others_are_answered() {
    let now = Instant::now();
    let mut progress = drain(&owned("web", 20), held(now), now);
    let first = progress.requests(now);
    assert_eq!(first.len(), 15);
    let later = now + A_MOMENT;
    for (answered, next) in first.iter().zip(["web-15", "web-16", "web-17", "web-18", "web-19"]) {
        progress.answered(&answered.uid, Answer::Leaving, later);
        assert_eq!(names(&progress.requests(later)), [next]);
    }
}

#[test]
fn six_pods_of_one_owner_are_asked_for_four_at_a_time() {
    let now = Instant::now();
    let mut progress = drain(&owned("web", 6), held(now), now);
    assert_eq!(progress.requests(now).len(), 4);
}

#[test]
fn pods_that_are_few_or_have_no_owner_in_common_are_asked_for_all_at_once() {
    let now = Instant::now();
    let mut pods: Vec<Pod> = (0..20).map(|n| pod(&format!("bare-{n:02}"), None)).collect();
    pods.extend(["web", "db", "cache"].iter().flat_map(|owner| owned(owner, 4)));
    let mut progress = drain(&pods, held(now), now);
    assert_eq!(progress.requests(now).len(), 32);
}

#[test]
fn a_pod_is_not_kept_back_for_more_than_a_second() {
    let now = Instant::now();
    let mut progress = drain(&owned("web", 20), held(now), now);
    progress.requests(now);
    let later = progress.next_due(now + A_MOMENT).unwrap();
    assert_eq!(later, now + Duration::from_secs(1));
    assert_eq!(progress.requests(later).len(), 5);
}

#[test]
fn a_pod_is_not_kept_back_at_the_cost_of_its_clean_shutdown() {
    let now = Instant::now();
    let mut pods = owned("web", 20);
    pods[19].spec.termination_grace_period_seconds = Some(598);
    let mut progress = drain(&pods, held(now), now);
    let asked = progress.requests(now);
    assert_eq!((asked.len(), names(&asked)[15]), (16, "web-19"));
}

#[test]
fn a_pod_whose_last_safe_moment_has_come_is_deleted_though_its_owners_others_are_under_way() {
    let now = Instant::now();
    let mut pods = owned("web", 20);
    let wish = [("karpenter.sh/do-not-disrupt".to_owned(), "true".to_owned())];
    pods[19].metadata.annotations = Some(wish.into());
    let window = held(now);
    let spot = Window { instance_goes: Termination::At(window.end), ..window };
    let mut progress = drain(&pods, spot, now);
    let last_safe_moment = spot.forced_from(Duration::from_secs(30)).unwrap();
    let mut asked = |at| progress.requests(at).into_iter().find(|request| request.uid == uid("web-19"));
    assert_eq!(asked(last_safe_moment - A_MOMENT), None);
    assert_eq!(asked(last_safe_moment).map(|request| request.way), Some(Method::Delete));
}
