//! Reads the error code and message from an error response. The position of both depends on the protocol.
//!
//! * JSON: The code is in the header `x-amzn-errortype` or the field `__type`, the message in the field `message` or `Message`.
//! * XML (SNS): Both are in the elements `Code` and `Message`.

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::error::ErrorMetadata;
use serde_json::Value;

/// Returns the error code and the first line of the message. Further lines may contain the session token.
pub(crate) fn read(response: &HttpResponse) -> ErrorMetadata {
    let body = String::from_utf8_lossy(response.body().bytes().unwrap_or_default());
    let header = response.headers().get("x-amzn-errortype").map(str::to_owned);
    let (code, message) = match serde_json::from_str::<Value>(&body) {
        Ok(json) => {
            let text = |field: &str| json[field].as_str().map(str::to_owned);
            (header.or(text("__type")), text("message").or(text("Message")))
        }
        Err(_) => (header.or(element(&body, "Code")), element(&body, "Message")),
    };
    let mut refusal = ErrorMetadata::builder();
    if let Some(code) = code {
        refusal = refusal.code(bare(&code));
    }
    if let Some(line) = message.as_deref().and_then(|message| message.lines().next()) {
        refusal = refusal.message(line);
    }
    refusal.build()
}

/// Removes the namespace prefix and the URL suffix of an error code.
fn bare(code: &str) -> &str {
    let code = code.split(':').next().unwrap_or_default();
    code.rsplit('#').next().unwrap_or_default()
}

fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once('<').map(|(text, _)| text.to_owned())
}

#[cfg(test)]
mod tests {
    use aws_smithy_runtime_api::http::StatusCode;
    use aws_smithy_types::body::SdkBody;

    use super::*;

    fn read_from(header: Option<&'static str>, body: &str) -> String {
        let status = StatusCode::try_from(403).expect("a status");
        let mut response = HttpResponse::new(status, SdkBody::from(body));
        if let Some(header) = header {
            response.headers_mut().insert("x-amzn-errortype", header);
        }
        let refusal = read(&response);
        format!("{}: {}", refusal.code().unwrap_or_default(), refusal.message().unwrap_or_default())
    }

    #[test]
    fn code_and_message_are_found_in_each_protocol() {
        let header = Some("AccessDeniedException:http://internal.amazon.com/coral/");
        assert_eq!(read_from(header, r#"{"Message":"no"}"#), "AccessDeniedException: no");
        let json = r#"{"__type":"com.amazon.coral#ParameterNotFound","message":"no"}"#;
        assert_eq!(read_from(None, json), "ParameterNotFound: no");
        let xml = "<ErrorResponse><Error><Type>Sender</Type><Code>NotFound</Code><Message>no</Message></Error></ErrorResponse>";
        assert_eq!(read_from(None, xml), "NotFound: no");
        assert_eq!(read_from(None, "<html>"), ": ");
    }

    #[test]
    fn message_is_cut_before_the_echoed_request() {
        let json =
            r#"{"__type":"InvalidSignatureException","message":"It does not match.\n\nx-amz-security-token:abc"}"#;
        assert_eq!(read_from(None, json), "InvalidSignatureException: It does not match.");
        let xml = "<Code>SignatureDoesNotMatch</Code><Message>It does not match.\nx-amz-security-token:abc</Message>";
        assert_eq!(read_from(None, xml), "SignatureDoesNotMatch: It does not match.");
    }
}
