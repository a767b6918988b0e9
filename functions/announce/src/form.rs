//! In which form the webhook gets its messages.

use gotemplate_json::Template;
use serde_json::json;

use crate::group::Message;
use crate::{json, slack, template, text, words};

/// Google Chat's limit of a text is 4,096 characters.
const TEXT: usize = 4_000;

/// The form.
#[derive(Debug)]
pub(crate) enum Form {
    Slack,
    Json,
    /// `{"text": …}`, which Google Chat, Mattermost and Rocket.Chat take as well.
    Text,
    /// As somebody wrote it.
    Template(Template),
}

impl Form {
    /// The body of the request. What a template cannot say is said in plain JSON, with the reason.
    pub(crate) fn body(&self, message: &Message<'_>) -> String {
        match self {
            Self::Slack => slack::message(message).to_string(),
            Self::Json => json::body(message),
            Self::Text => json!({"text": words::clip(&text::body(message), TEXT)}).to_string(),
            Self::Template(template) => template.render(&template::fields(message)).unwrap_or_else(|error| {
                let why = format!("the webhook's template failed at {error}");
                tracing::error!(error = why, "the message is sent in plain JSON");
                json::body_instead(message, why)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::samples::{self, begun, ended, lossy};

    fn said(template: &str, message: &Message<'_>) -> String {
        Form::Template(Template::parse(template).expect("a template")).body(message)
    }

    #[test]
    fn text_form_has_one_member_and_fits_into_google_chat() {
        let events: Vec<_> = (0..100).map(lossy).collect();
        let body: Value = serde_json::from_str(&Form::Text.body(&samples::message(&events.iter().collect::<Vec<_>>())))
            .expect("JSON");
        let members: Vec<_> = body.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["text"]);
        let text = body["text"].as_str().expect("a text");
        assert!(text.starts_with("100 nodes of prod") && text.chars().count() <= 4_096, "{text}");
    }

    #[test]
    fn nths_own_template_says_what_nth_says() {
        let nths = r#"{"text":"[NTH][Instance Interruption] EventID: {{ .EventID }} - Kind: {{ .Kind }} - Instance: {{ .InstanceID }} - Node: {{ .NodeName }} - Description: {{ .Description }} - Start Time: {{ .StartTime }}"}"#;
        insta::assert_snapshot!(said(nths, &samples::message(&[&begun(1)])));
    }

    #[test]
    fn a_template_as_nths_users_write_them_makes_json_for_one_drain_and_for_many() {
        let users = r#"{"channel": "{{ .NodeLabels.team | default "ops" }}", "text": "{{ if eq .Kind "SPOT_ITN" }}:zap:{{ else }}:gear:{{ end }} *{{ .Kind | replace "_" " " | title }}* of `{{ .NodeName }}` ({{ .InstanceID }}, {{ .InstanceType }}, {{ .AvailabilityZone }}) in {{ upper .Region }}/{{ .AccountId }}{{ with .AutoScalingGroupName }}, group {{ . }}{{ end }}\n{{ .Description | trunc 60 }}\n{{ printf "%d pods: " (len .Pods) }}{{ range $i, $pod := .Pods }}{{ if $i }}, {{ end }}{{ $pod }}{{ end }}{{- /* no more */ -}}"}"#;
        let (one, two) = (ended(1, "drained"), ended(2, "failed"));
        for message in [samples::message(&[&one]), samples::message(&[&one, &two])] {
            let body: Value = serde_json::from_str(&said(users, &message)).expect("JSON");
            insta::assert_json_snapshot!(body);
        }
    }

    #[test]
    fn a_template_may_ask_when_the_instance_goes_though_nobody_knows() {
        let asks = r#"{{ if not .EndTime.IsZero }}goes at {{ .EndTime.Format "15:04" }}{{ else }}waits{{ end }}"#;
        let (spot, mut hook) = (begun(1), begun(2));
        hook.receipt.notice.deadline = None;
        assert_eq!(said(asks, &samples::message(&[&spot])), "goes at 03:14");
        assert_eq!(said(asks, &samples::message(&[&hook])), "waits");
        assert_eq!(said(asks, &samples::message(&[&hook, &spot])), "goes at 03:14");
    }

    #[test]
    fn a_template_finds_all_drains_of_a_batch() {
        let each = "{{ .Phase }} {{ len .Notices }}:{{ range .Notices }} {{ .NodeName }} {{ .Ending }};{{ end }}";
        assert_eq!(
            said(each, &samples::message(&[&ended(1, "drained"), &ended(2, "failed")])),
            "ended 2: ip-10-0-0-1.eu-west-1.compute.internal drained; ip-10-0-0-2.eu-west-1.compute.internal failed;"
        );
    }

    #[test]
    fn a_template_that_fails_gives_way_to_plain_json_which_says_why() {
        let body = said("{{ .NoSuchField }}", &samples::message(&[&begun(1)]));
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let why = body["template_error"].as_str().expect("a reason");
        assert!(
            why.starts_with("the webhook's template failed at line 1, column ") && why.contains("NoSuchField"),
            "{why}"
        );
        let text = body["text"].as_str().expect("a text");
        assert!(text.starts_with("Draining ip-10-0-0-1") && text.ends_with(&format!("({why})")), "{text}");
    }
}
