//! Template functions for arithmetic. As in sprig, a value that is not a number counts as 0.

use serde_json::Value;

use super::arguments::Arguments;
use super::convert::{BEYOND, float, integer};
use super::{Body, Function, at_least, exactly};

pub(super) static FUNCTIONS: [Function; 12] = [
    at_least("add", 0, |arguments| fold(arguments, i64::checked_add)),
    exactly("add1", 1, |arguments| whole(integer(arguments.value(0))?.checked_add(1))),
    exactly("sub", 2, |arguments| fold(arguments, i64::checked_sub)),
    at_least("mul", 1, |arguments| fold(arguments, i64::checked_mul)),
    exactly("div", 2, |arguments| divided(arguments, i64::checked_div)),
    exactly("mod", 2, |arguments| divided(arguments, i64::checked_rem)),
    at_least("max", 1, |arguments| fold(arguments, |one, other| Some(one.max(other)))),
    at_least("biggest", 1, |arguments| fold(arguments, |one, other| Some(one.max(other)))),
    at_least("min", 1, |arguments| fold(arguments, |one, other| Some(one.min(other)))),
    exactly("floor", 1, |arguments| Ok(Value::from(float(arguments.value(0)).floor()))),
    exactly("ceil", 1, |arguments| Ok(Value::from(float(arguments.value(0)).ceil()))),
    Function { name: "round", least: 2, most: Some(3), body: Body::Plain(round) },
];

fn fold(arguments: &Arguments<'_>, with: fn(i64, i64) -> Option<i64>) -> Result<Value, String> {
    let mut numbers = arguments.from(0).map(integer);
    let first = numbers.next().unwrap_or(Ok(0));
    numbers.try_fold(first?, |total, number| with(total, number?).ok_or_else(|| BEYOND.to_owned())).map(Value::from)
}

fn divided(arguments: &Arguments<'_>, with: fn(i64, i64) -> Option<i64>) -> Result<Value, String> {
    if integer(arguments.value(1))? == 0 {
        return Err("division by zero".to_owned());
    }
    fold(arguments, with)
}

fn whole(number: Option<i64>) -> Result<Value, String> {
    number.map(Value::from).ok_or_else(|| BEYOND.to_owned())
}

/// Rounds to a number of decimals. Rounds up if the remaining fraction is at least the third argument, which is 0.5 by default.
fn round(arguments: &Arguments<'_>) -> Result<Value, String> {
    let value = float(arguments.value(0));
    let places = i32::try_from(arguments.integer(1)?).unwrap_or(i32::MAX);
    let up_from = if arguments.len() > 2 { float(arguments.value(2)) } else { 0.5 };
    let power = 10_f64.powi(places);
    let shifted = value * power;
    let rounded = if shifted.fract() >= up_from { shifted.ceil() } else { shifted.floor() };
    Ok(Value::from(rounded / power))
}
