"""The matcher of event patterns: what passes a pattern, and which are none."""

import unittest


from bed_aws.ruler import PatternError, Ruler


class TheRuler(unittest.TestCase):
    def test_the_rules_whose_every_field_says_yes(self) -> None:
        ruler = Ruler({"b": {"source": ["aws.ec2"]}, "a": {"source": ["aws.ec2"], "detail": {"state": ["running"]}}})
        self.assertEqual(ruler.rules_for({"source": "aws.ec2", "detail": {"state": "running"}}), ["a", "b"])
        self.assertEqual(ruler.rules_for({"source": "aws.ec2", "detail": {"state": "pending"}}), ["b"])
        self.assertEqual(ruler.rules_for({"source": "my.ec2"}), [])

    def test_refused_pattern_names_its_rule(self) -> None:
        for pattern, why in (
            ({"source": []}, "Empty arrays are not allowed"),
            ({"source": "aws.ec2"}, '"source" must be an object or an array'),
            ({"source": [{"prefix": 5}]}, "prefix match pattern must be a string"),
            ({"source": [{"suffixes": "2"}]}, "Unrecognized match type suffixes"),
            ({"replay-name": [{"exists": "no"}]}, "exists match pattern must be either true or false."),
            ({"source": [{"prefix": "aws.", "suffix": "2"}]}, "Only one key allowed in match expression"),
        ):
            with self.subTest(pattern=pattern), self.assertRaises(PatternError) as refused:
                Ruler({"Fine": {"source": ["aws.ec2"]}, "Wrong": pattern})
            self.assertEqual(str(refused.exception), f"the pattern of Wrong: {why}")
