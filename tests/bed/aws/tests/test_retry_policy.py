"""What becomes of an event that its target refuses."""

import unittest

from bed_aws.retry_policy import Delivered, GivenUp, Refusal, RetryPolicy, outcome

THROTTLED = Refusal(429, "Rate exceeded")


def for_s(seconds: float, status: int = 429) -> Refusal:
    return Refusal(status, "", seconds)


class Outcomes(unittest.TestCase):
    def test_what_nobody_refuses_comes_at_once(self) -> None:
        self.assertEqual(outcome(RetryPolicy(), []), Delivered(0, 0))

    def test_each_wait_is_twice_the_one_before_and_an_event_comes_after_the_first_that_outlasts_the_refusal(self) -> None:
        for refused_s, age_s, retries in ((0.5, 1, 1), (1, 1, 1), (1.5, 3, 2), (60, 63, 6)):
            self.assertEqual(outcome(RetryPolicy(), [for_s(refused_s)]), Delivered(age_s, retries))

    def test_one_refusal_follows_the_other(self) -> None:
        self.assertEqual(outcome(RetryPolicy(), [for_s(2), for_s(10, status=500)]), Delivered(15, 4))

    def test_past_its_age_it_is_given_up_though_attempts_are_left(self) -> None:
        spot = RetryPolicy(maximum_event_age_s=120)
        given_up = outcome(spot, [THROTTLED])
        self.assertEqual(given_up, GivenUp(THROTTLED, 6, "MaximumEventAgeInSeconds"))
        # The next attempt would be when it is 127 s old.
        self.assertIsInstance(outcome(spot, [for_s(63)]), Delivered)
        self.assertIsInstance(outcome(spot, [for_s(64)]), GivenUp)

    def test_past_its_attempts_it_is_given_up_though_it_is_young(self) -> None:
        for attempts in (0, 3):
            given_up = outcome(RetryPolicy(maximum_retry_attempts=attempts), [THROTTLED])
            self.assertEqual(given_up, GivenUp(THROTTLED, attempts, "MaximumRetryAttempts"))

    def test_of_aws_defaults_the_attempts_and_the_day_end_together(self) -> None:
        """The longest wait comes from this."""
        given_up = outcome(RetryPolicy(maximum_event_age_s=float("inf")), [THROTTLED])
        self.assertEqual(given_up, GivenUp(THROTTLED, 185, "MaximumRetryAttempts"))
        in_a_day = outcome(RetryPolicy(maximum_retry_attempts=10**6), [THROTTLED])
        assert isinstance(in_a_day, GivenUp)
        self.assertEqual(in_a_day.retry_attempts, 185)

    def test_what_only_somebody_could_change_is_not_tried_again(self) -> None:
        for status, code in ((403, "NO_PERMISSIONS"), (404, "NO_RESOURCE")):
            given_up = outcome(RetryPolicy(), [Refusal(status, "")])
            assert isinstance(given_up, GivenUp)
            self.assertEqual((given_up.code, given_up.retry_attempts, given_up.exhausted), (code, 0, None))

    def test_a_permission_that_is_taken_away_meanwhile_ends_it_too(self) -> None:
        given_up = outcome(RetryPolicy(), [for_s(2), Refusal(403, "")])
        assert isinstance(given_up, GivenUp)
        self.assertEqual((given_up.code, given_up.retry_attempts), ("NO_PERMISSIONS", 2))
