use super::*;
use crate::actions::cordon::cordon;

async fn cordoned(
    case: Case,
    api: impl IntoIterator<Item = Expected>,
    aws: impl IntoIterator<Item = Expected>,
) -> (Failure, HookStatus) {
    let (context, mut record) = (TestContext::new(&[], api, aws), Record::default());
    let attempt = case.attempt(&context).await;
    let failure = cordon(&context, &case.target(&attempt), &mut record).await.unwrap_err();
    (failure, record.hook)
}

#[tokio::test(start_paused = true)]
async fn denied_cordon_is_a_failure_even_if_the_instance_goes() {
    for (answer, error_type, seconds) in [
        (patch_node().says(403, denied_by_webhook(403)), "KubernetesDenied", 0),
        (patch_node().says(503, "busy").repeated(), "KubernetesRefused", 120),
    ] {
        let began = Instant::now();
        let (failure, _) = cordoned(Case::spot(), [answer], []).await;
        assert_eq!((failure.error_type(), began.elapsed().as_secs()), (error_type, seconds));
    }
}

#[tokio::test(start_paused = true)]
async fn unscheduled_check_fails_the_notice_after_its_hook() {
    let denied = call(format!("POST /schedules/{NODE}.{}.0", Kind::ReplaceRootVolume.as_str().replace(' ', "-")))
        .says(403, json_error("AccessDeniedException"));
    let (api, aws) = ([read_node(node()), claim_node()], [hook_described(), denied, completed("CONTINUE")]);
    let (failure, hook) = cordoned(Case::held(Kind::ReplaceRootVolume), api, aws).await;
    assert_eq!((failure.error_type(), hook), ("AwsDenied", HookStatus::Completed(Continue)));
}
