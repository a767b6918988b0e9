//! A label selector, as kubectl takes it: printed, it is the same selector; what is none names its setting.

use spillway_settings::Settings;

use crate::{Form, Target};

const SETTING: &str = "SPILLWAY_NODE_SELECTOR";

pub(super) const TARGET: Target = Target {
    name: "selectors",
    form: Form::Text,
    seeds: || {
        let written = [
            "tier",
            "!tier",
            "tier=web",
            "tier == web",
            "tier!=web",
            "tier in (web, api)",
            "tier notin (web,api,)",
            "example.com/team=shop,tier in (web),!legacy",
            "a.b-c_d/E.f-g_h=1",
            "in,notin=",
        ];
        written.map(str::to_owned).into()
    },
    examine: |input| {
        let Ok(text) = str::from_utf8(input) else { return };
        match read(text) {
            Ok(settings) => {
                let printed = settings.node_selector.to_string();
                assert_eq!(read(&printed).expect("what we print we read").node_selector, settings.node_selector);
            }
            Err(error) => assert!(error.contains(SETTING) && error.contains("it takes"), "{error}"),
        }
    },
};

fn read(selector: &str) -> Result<Settings, String> {
    let variable = (SETTING.to_owned(), selector.to_owned());
    Settings::from_variables(std::iter::once(variable)).map_err(|error| error.to_string())
}
